"""Tests of the protocol machines."""
