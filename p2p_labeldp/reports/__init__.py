"""Results and facts made readable. Nothing here plays a round or draws a coin.

- ``table``, ``answers``: for a terminal: a result; what ``account``, ``plan`` and ``audit`` answer
- ``kept_run``: a kept run as a page needs it, without labels and names
- ``page``: the HTML page, of ``sections`` (what it says of a run), ``comparison`` (several runs), ``figures`` (what is
  drawn) and ``markup``; ``drawing`` draws, ``style`` dresses, ``words`` explains, ``cautions`` warns, ``profiles`` asks
  the accountant for curves
- ``plots``: figures for a paper
- ``views``: what a party saw of a round
"""
