"""Faults of HTTP in a round of deployed peers on real sockets: such an answer is none, and whoever asked abstains.

The controls are the same round without a fault, and the same faults with the client's check of each switched off.
"""

import asyncio
import base64
import dataclasses
import re

import pytest

from network.test_peer_process import REPORTED, play
from p2p_labeldp.crypto import signatures
from p2p_labeldp.errors import ProtocolError
from p2p_labeldp.facts import Asked, Held, Outcome, Reason
from p2p_labeldp.network.http import HttpServer, posting
from p2p_labeldp.protocol import wire
from p2p_labeldp.protocol.messages import Answer

pytestmark = pytest.mark.processes

NO_ANSWER = (Outcome.ABSTAINED, Reason.MATE_UNREACHABLE)


def redirected(_, response, elsewhere):
    """The mate sends the asker somewhere else."""
    fields = {**response.fields, "location": f"http://127.0.0.1:{elsewhere}/p2p/v1"}
    return dataclasses.replace(response, status=307, fields=fields)


def compressed(_, response, _elsewhere):
    """The mate says that its answer has to be unpacked first."""
    return dataclasses.replace(response, fields={**response.fields, "content-encoding": "gzip"})


def not_covering_the_body(server, response, _elsewhere):
    """The mate's signature, well made, covers all but the digest of what it says."""
    left_out = '"content-digest"'
    listed = [one for one in signatures.RESPONSE_COMPONENTS if one != left_out]
    params = response.fields["signature-input"].removeprefix("sig1=").replace(f"{left_out} ", "")
    question = server.asked["signature"].removeprefix("sig1=")
    values = (str(response.status), response.fields["content-type"], response.fields["p2p-recipient"], question)
    signed = base64.b64encode(server._key.sign(signatures.signature_base(listed, values, params))).decode()
    changes = {"signature-input": f"sig1={params}", "signature": f"sig1=:{signed}:"}
    return dataclasses.replace(response, fields={**response.fields, **changes})


def believed_wherever_it_leads(monkeypatch):
    """Redirects are not looked at: what came with one counts as if it were none."""
    post = posting.post

    async def followed(*arguments, **options):
        answer = await post(*arguments, **options)
        return dataclasses.replace(answer, status=200) if answer.status == 307 else answer

    monkeypatch.setattr(posting, "post", followed)


def believed_however_it_is_packed(monkeypatch):
    parse = posting.parse_head

    def blind(head, first_line):
        line, fields = parse(head, first_line)
        return line, {name: value for name, value in fields.items() if name != "content-encoding"}

    monkeypatch.setattr(posting, "parse_head", blind)


def believed_whatever_it_covers(monkeypatch):
    base = signatures.signature_base
    loose = signatures._RESPONSE_INPUT.pattern.replace(re.escape(signatures._RESPONSE_LIST), r"\([^)]*\)")

    def of_what_is_listed(components, values, params):
        by_name = dict(zip(components, values, strict=True))
        listed = params[1 : params.index(")")].split()
        return base(listed, [by_name[name] for name in listed], params)

    monkeypatch.setattr(signatures, "_RESPONSE_INPUT", re.compile(loose))
    monkeypatch.setattr(signatures, "signature_base", of_what_is_listed)


FAULTS = {
    "a redirect": (redirected, believed_wherever_it_leads),
    "a compressed body": (compressed, believed_however_it_is_packed),
    "a signature that does not cover the body": (not_covering_the_body, believed_whatever_it_covers),
}


async def spoilt(directory, monkeypatch, fault):
    """A round in which every box comes with this fault; its ends and facts, and how often anybody went elsewhere."""
    visits, answer = [], HttpServer.answer

    async def visited(_, writer):
        visits.append(1)
        writer.close()

    def faulty(self, request, body, remote):
        response, self.asked = answer(self, request, body, remote), request.fields
        try:
            boxed = isinstance(wire.decode(response.body), Answer)
        except ProtocolError:  # a refusal in words
            boxed = False
        return fault(self, response, elsewhere.sockets[0].getsockname()[1]) if boxed else response

    elsewhere = await asyncio.start_server(visited, "127.0.0.1", 0)
    monkeypatch.setattr(HttpServer, "answer", faulty)
    try:
        ends, facts, _ = await play(directory, keep=None)
    finally:
        elsewhere.close()
        await elsewhere.wait_closed()
    return ends, facts, len(visits)


@pytest.mark.parametrize("why", FAULTS)
async def test_an_answer_with_a_fault_is_none_and_its_asker_abstains(tmp_path, monkeypatch, why):
    fault, _ = FAULTS[why]
    ends, facts, visits = await spoilt(tmp_path, monkeypatch, fault)
    assert ends == [NO_ANSWER] * 3
    assert len([fact for fact in facts if isinstance(fact, Asked)]) == 3
    assert not [fact for fact in facts if isinstance(fact, Held)]
    assert visits == 0


@pytest.mark.parametrize("why", FAULTS)
async def test_with_its_check_switched_off_the_same_answer_counts(tmp_path, monkeypatch, why):
    fault, unchecked = FAULTS[why]
    if why == "a redirect":  # its status is covered by the signature
        monkeypatch.setattr(signatures, "verify", lambda *_: None)
    unchecked(monkeypatch)
    ends, _, _ = await spoilt(tmp_path, monkeypatch, fault)
    assert ends == [REPORTED] * 3


async def test_without_a_fault_all_report(tmp_path, monkeypatch):
    ends, _, _ = await spoilt(tmp_path, monkeypatch, lambda _server, response, _elsewhere: response)
    assert ends == [REPORTED] * 3
