"""A round in containers: what they are given, and the files that start them.

- ``shard``: the file of secrets that a container of peers is given
- ``plan``: who is in which container, and what the containers take; refuses what can't work
- ``compose``: for containers on one machine
- ``kubernetes``: for a cluster; the files fit the API's schema and were tried on none
- ``files``: writes them, secrets readable by their owner alone
"""
