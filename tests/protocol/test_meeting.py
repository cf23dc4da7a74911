"""Meeting points and hubs: where those of a cluster meet."""

import math

import pytest

from p2p_labeldp.protocol.meeting import MEMBERS_A_HUB, distance, hubs, meeting_point
from protocol.little_round import OPENED, ids


def test_meeting_points_differ_by_cluster_and_by_round():
    other = bytes(32)
    assert len({meeting_point(OPENED.round_id, 0), meeting_point(OPENED.round_id, 1), meeting_point(other, 0)}) == 3


def test_distance_is_the_exclusive_or_of_the_first_64_bits():
    assert distance(b"\x00" * 7 + b"\x05" + b"\xff" * 24, b"\x00" * 7 + b"\x03" + b"\x00" * 24) == 6
    assert distance(b"\x80" + bytes(31), bytes(32)) == 1 << 63


@pytest.mark.parametrize("size", [1, 2, MEMBERS_A_HUB, MEMBERS_A_HUB + 1, 300])
def test_hubs_are_the_nearest_one_for_so_many_members(size):
    members, point = ids(range(1, size + 1)), meeting_point(OPENED.round_id, 0)
    found = hubs(members, point)
    assert len(found) == math.ceil(size / MEMBERS_A_HUB)
    assert found == sorted(members, key=lambda one: distance(one, point))[: len(found)]
    assert set(hubs(members[::-1], point)) == set(found)
