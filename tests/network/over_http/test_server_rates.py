"""How often anybody may ask a server."""

import pytest

from network.over_http.wire import ADA, EVE, ask, client, listening, parsed, request, send, usual
from p2p_labeldp.errors import PeerUnreachable


async def test_a_sender_over_its_rate_is_told_when_to_come_back_and_others_are_served():
    seen, time = [], [0.0]
    async with listening(
        lambda sender, body: seen.append(sender) or b"ok", sender_rate=usual(), monotonic=lambda: time[0]
    ) as (_, ben):
        for _ in range(3):
            assert await ask(ben) == (200, b"ok")
        assert await ask(ben) == (429, b"too_many 1")
        data, _ = request(ben)
        assert parsed(await send(ben, data)).fields["retry-after"] == "1"
        assert await ask(ben, key=EVE) == (200, b"ok")
        time[0] = 1.0
        assert await ask(ben) == (200, b"ok")
        assert await ask(ben) == (429, b"too_many 1")
        assert seen == [ADA.peer_id] * 3 + [EVE.peer_id, ADA.peer_id]


async def test_nobody_uses_up_anothers_rate_by_forging_or_replaying_its_requests():
    async with listening(lambda sender, body: b"ok", sender_rate=usual(), monotonic=lambda: 0.0) as (_, ben):
        data, _ = request(ben)
        assert parsed(await send(ben, data)).status == 200
        for _ in range(5):
            assert parsed(await send(ben, data)).status == 409  # a replay
            forged, _ = request(ben, signature=request(ben, key=EVE)[1]["signature"])
            assert parsed(await send(ben, forged)).status == 401
        for _ in range(2):
            assert await ask(ben) == (200, b"ok")
        assert (await ask(ben))[0] == 429  # the fourth of its own


async def test_all_together_have_a_rate_too_which_counts_what_does_not_verify():
    time = [0.0]
    async with listening(lambda sender, body: b"ok", total_rate=usual(), monotonic=lambda: time[0]) as (_, ben):
        for _ in range(2):
            data, _ = request(ben, drop=["signature", "signature-input"])
            assert parsed(await send(ben, data)).status == 401
        assert await ask(ben) == (200, b"ok")
        assert parsed(await send(ben, b"no HTTP")).status == 429
        for key in (ADA, EVE):
            assert await ask(ben, key=key) == (429, b"too_many 1")
        time[0] = 1.0
        assert await ask(ben, key=EVE) == (200, b"ok")


async def test_who_is_over_its_rate_takes_the_other_for_unreachable_and_may_try_again():
    time = [0.0]
    async with (
        listening(lambda sender, body: b"ok", sender_rate=usual(burst=1.0), monotonic=lambda: time[0]) as (_, ben),
        client() as c,
    ):
        assert await c.post(ADA, ben, b"", timeout=60) == b"ok"
        with pytest.raises(PeerUnreachable, match="429 too_many"):
            await c.post(ADA, ben, b"", timeout=60)
        time[0] = 1.0
        assert await c.post(ADA, ben, b"", timeout=60) == b"ok"
