"""Hostile worlds: small rounds on the virtual network in which things go wrong, all of it from one seed.

faults      what can go wrong, as values
presets     which faults a seed draws
disk        what a party has on disk, in memory
faulty      the virtual network with these faults
lies        what Byzantine parties do
scenario    one round: played, and held against the invariants
searching   many scenarios; a failing one shrunk to the faults it needs
"""
