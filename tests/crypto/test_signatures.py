"""HTTP signatures of requests and answers: one profile, without leeway."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.questions import ADA, BEN, EVE, NOW, QUESTION, TYPE, answer, ask, check, check_answer
from p2p_labeldp.crypto.signatures import (
    FIELDS,
    REQUEST_COMPONENTS,
    ClockSkew,
    claimed_sender,
    content_digest,
    sign_refusal,
    signature_base,
)
from p2p_labeldp.errors import AuthenticationFailed

# Requests


def test_a_request_names_its_sender():
    headers = ask(nonce=bytes(range(16)))
    assert tuple(headers) == FIELDS
    verified = check(headers)
    assert (verified.public, verified.peer_id) == (ADA.public, ADA.peer_id)
    assert (verified.nonce, verified.created, verified.expires) == (bytes(range(16)), NOW, NOW + 60)
    assert verified.signature == headers["signature"]
    assert claimed_sender(headers) == ADA.peer_id


@pytest.mark.parametrize(
    "change",
    [
        {"method": "PUT"},
        {"authority": "127.1.2.4:9000"},
        {"path": "/p2p/v2"},
        {"body": b"questiom"},
        {"recipient": EVE},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_request_received_otherwise_than_sent_is_refused(change):
    check(ask())
    with pytest.raises(AuthenticationFailed) as caught:
        check(ask(), **change)
    assert str(caught.value) == "authentication failed"
    assert caught.value.detail
    check(ask(**change), **change)  # it is the difference that is refused


@pytest.mark.parametrize("name", FIELDS)
def test_a_request_with_any_field_changed_or_missing_is_refused(name):
    headers = ask()
    check(headers)
    other = ask(key=EVE, recipient=EVE, nonce=b"\x01" * 16, body=b"other", content_type="text/plain")
    with pytest.raises(AuthenticationFailed):
        check(headers | {name: other[name]})
    with pytest.raises(AuthenticationFailed):
        check({field: value for field, value in headers.items() if field != name})
    for i in range(len(headers[name])):
        character = chr(ord(headers[name][i]) ^ 1)
        with pytest.raises(AuthenticationFailed):
            check(headers | {name: headers[name][:i] + character + headers[name][i + 1 :]})


def test_the_digest_must_match_even_if_the_signature_covers_another():
    headers = ask(body=b"other")
    check(headers, body=b"other")
    with pytest.raises(AuthenticationFailed) as caught:
        check(headers)
    assert "content-digest" in caught.value.detail


def resigned(components, params, values):
    """A request with a valid signature over what the caller likes."""
    listed = f"({' '.join(components)})"
    headers = ask()
    params = listed + params
    base = signature_base(components, [values[component] for component in components], params)
    headers["signature-input"] = f"sig1={params}"
    headers["signature"] = f"sig1=:{base64.b64encode(ADA.sign(base)).decode()}:"
    return headers


PARAMS = (
    f';created={NOW};expires={NOW + 60};nonce="{"0" * 32}";keyid="{ADA.public.hex()}";alg="ed25519";tag="p2p-labeldp"'
)
VALUES = dict(
    zip(
        REQUEST_COMPONENTS,
        ("POST", QUESTION["authority"], "/p2p/v1", content_digest(b"question"), TYPE, BEN.peer_id.hex()),
        strict=True,
    )
) | {'"@scheme"': "http"}


def test_only_the_exact_list_of_components_is_accepted_however_well_signed():
    check(resigned(REQUEST_COMPONENTS, PARAMS, VALUES))
    lists = [REQUEST_COMPONENTS[:i] + REQUEST_COMPONENTS[i + 1 :] for i in range(6)]  # each one missing
    lists += [(*REQUEST_COMPONENTS, '"@scheme"'), ('"@scheme"', *REQUEST_COMPONENTS)]  # one too many
    lists += [REQUEST_COMPONENTS[::-1], (*REQUEST_COMPONENTS[1:], REQUEST_COMPONENTS[0])]  # another order
    lists += [(*REQUEST_COMPONENTS, REQUEST_COMPONENTS[0]), ()]  # one twice; none
    for components in lists:
        with pytest.raises(AuthenticationFailed):
            check(resigned(components, PARAMS, VALUES))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('alg="ed25519"', 'alg="hmac-sha256"'),
        (';alg="ed25519"', ""),
        ('tag="p2p-labeldp"', 'tag="other"'),
        (';tag="p2p-labeldp"', ""),
        (f';nonce="{"0" * 32}"', ""),
        (f';nonce="{"0" * 32}"', ';nonce=""'),
        (f";created={NOW}", ""),
        (f";created={NOW}", f";created=0{NOW}"),
        (f";created={NOW}", f";created={NOW}.0"),
        (f";created={NOW}", f";created=-{NOW}"),
        (f";expires={NOW + 60}", ""),
        (f";expires={NOW + 60}", f";expires={NOW + 61}"),  # valid for too long
        (f";expires={NOW + 60}", f";expires={NOW}"),
        (f";expires={NOW + 60}", f";expires={'9' * 15}"),
        (ADA.public.hex(), ADA.public.hex().upper()),
        (ADA.public.hex(), ADA.public.hex()[:-2]),
        ('tag="p2p-labeldp"', 'tag="p2p-labeldp";x=1'),
        (";created", " ;created"),
        (";created", "; created"),
    ],
)
def test_only_the_exact_parameters_are_accepted_however_well_signed(old, new):
    assert old in PARAMS
    check(resigned(REQUEST_COMPONENTS, PARAMS, VALUES))
    with pytest.raises(AuthenticationFailed):
        check(resigned(REQUEST_COMPONENTS, PARAMS.replace(old, new), VALUES))


@pytest.mark.parametrize("name", ["signature-input", "signature"])
def test_other_labels_second_signatures_and_other_spellings_are_refused(name):
    headers = ask()
    check(headers)
    value = headers[name]
    for bad in (
        value.replace("sig1=", "sig2="),
        value + ", " + value.replace("sig1=", "sig2="),
        value + ";x",
        value + " ",
        " " + value,
        value + "\n",
        "",
        value.replace("sig1=", "sig1 = "),
    ):
        with pytest.raises(AuthenticationFailed):
            check(headers | {name: bad})


def test_a_signature_has_one_spelling():
    # The last base64 digit of 64 bytes has four spare bits; a decoder ignores them.
    headers = ask()
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    value = headers["signature"]
    same = [
        value[:-4] + digit + value[-3:]
        for digit in digits
        if base64.b64decode(value[6:-4] + digit + "==") == base64.b64decode(value[6:-1])
    ]
    assert len(same) == 16
    assert sum(_accepted(headers | {"signature": one}) for one in same) == 1


def _accepted(headers):
    try:
        check(headers)
    except AuthenticationFailed:
        return False
    return True


@pytest.mark.parametrize("field", ["method", "authority", "path"])
@pytest.mark.parametrize("character", ["\n", "\r", "\t", "\x00", "é", "\u2028"])
def test_a_covered_value_can_not_pass_for_another_line(field, character):
    check(ask(**{field: "x"}), **{field: "x"})
    with pytest.raises(AuthenticationFailed):
        ask(**{field: f"x{character}y"})
    with pytest.raises(AuthenticationFailed):
        check(ask(), **{field: f"x{character}y"})


# Clocks


@pytest.mark.parametrize("off", [-1, 1, -6, 6, -30, 30])
def test_a_clock_within_the_allowance_works(off):
    check(ask(now=NOW + off))


@pytest.mark.parametrize("off", [-600, 600, 31, -91])
def test_a_clock_beyond_it_is_told_apart_and_both_times_are_named(off):
    with pytest.raises(ClockSkew) as caught:
        check(ask(now=NOW + off))
    assert (caught.value.theirs, caught.value.ours, caught.value.allowed_seconds) == (NOW + off, NOW, 30)
    for text in (str(caught.value), caught.value.detail):
        assert re.search(rf"{NOW + off}\b.*{NOW}\b.*\b30 s", text)


def test_the_allowance_is_the_callers():
    with pytest.raises(ClockSkew):
        check(ask(now=NOW + 600), allowed=599)
    check(ask(now=NOW + 600), allowed=600)
    check(ask(now=NOW - 660), allowed=600)
    with pytest.raises(ClockSkew):
        check(ask(now=NOW - 661), allowed=600)


def test_a_forgery_is_never_called_a_wrong_clock():
    headers = ask(now=NOW + 600)
    with pytest.raises(ClockSkew):
        check(headers)
    forged = headers | {"signature": ask(key=EVE, now=NOW + 600)["signature"]}
    with pytest.raises(AuthenticationFailed) as caught:
        check(forged)
    assert not isinstance(caught.value, ClockSkew)


# Answers


@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_answer_names_its_sender(status):
    request = ask()
    headers = answer(request, status=status)
    assert tuple(headers) == FIELDS
    verified = check_answer(headers, request, status=status)
    assert (verified.public, verified.peer_id, verified.created) == (BEN.public, BEN.peer_id, NOW)


@pytest.mark.parametrize(
    "change",
    [{"status": 201}, {"body": b"answes"}, {"recipient": EVE}, {"sender": EVE}],
    ids=lambda change: next(iter(change)),
)
def test_an_answer_received_otherwise_than_sent_is_refused(change):
    request = ask()
    check_answer(answer(request), request)
    with pytest.raises(AuthenticationFailed):
        check_answer(answer(request), request, **change)


def test_an_answer_moved_to_another_question_is_refused():
    first, second = ask(nonce=bytes(16)), ask(nonce=b"\x01" * 16)
    check_answer(answer(first), first)
    check_answer(answer(second), second)
    with pytest.raises(AuthenticationFailed):
        check_answer(answer(first), second)


def test_an_answer_by_another_peer_is_refused():
    request = ask()
    check_answer(answer(request, key=EVE), request, sender=EVE)
    with pytest.raises(AuthenticationFailed):
        check_answer(answer(request, key=EVE), request)


@pytest.mark.parametrize("name", FIELDS)
def test_an_answer_with_any_field_changed_or_missing_is_refused(name):
    request = ask()
    headers = answer(request)
    check_answer(headers, request)
    with pytest.raises(AuthenticationFailed):
        check_answer({field: value for field, value in headers.items() if field != name}, request)
    for i in range(len(headers[name])):
        character = chr(ord(headers[name][i]) ^ 1)
        with pytest.raises(AuthenticationFailed):
            check_answer(headers | {name: headers[name][:i] + character + headers[name][i + 1 :]}, request)


def test_a_request_and_a_refusal_are_no_answers_and_an_answer_is_no_request():
    request = ask()
    headers = answer(request)
    check_answer(headers, request)
    for other in (
        ask(key=BEN, recipient=ADA, body=b"answer"),
        sign_refusal(BEN, status=200, content_type=TYPE, body=b"answer", now=NOW),
    ):
        with pytest.raises(AuthenticationFailed):
            check_answer(other | {"p2p-recipient": ADA.peer_id.hex()}, request)
    with pytest.raises(AuthenticationFailed):
        check(answer(ask(key=BEN, recipient=ADA), key=ADA, recipient=BEN, body=b"question"))


# Any bytes

TEXT = st.text(st.characters(max_codepoint=255), max_size=300)


@given(st.dictionaries(st.sampled_from(FIELDS), TEXT), st.booleans())
def test_any_fields_are_a_clean_refusal(changes, only):
    if not changes:
        return
    request = ask()
    for check_it, good in ((check, request), (lambda h: check_answer(h, request), answer(request))):
        with pytest.raises(AuthenticationFailed):
            check_it(changes if only else good | changes)
    with pytest.raises(AuthenticationFailed):
        claimed_sender(changes)


@given(st.data())
def test_any_parameters_in_the_profiles_shape_are_a_clean_refusal(data):
    headers = ask()
    fields = re.split(r"([=;\"]+)", headers["signature-input"])
    i = data.draw(st.integers(0, len(fields) - 1))
    value = data.draw(TEXT.filter(lambda text: text != fields[i]))
    with pytest.raises(AuthenticationFailed):
        check(headers | {"signature-input": "".join([*fields[:i], value, *fields[i + 1 :]])})
