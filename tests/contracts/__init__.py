"""Suites that every implementation of an interface runs."""
