"""The style sheet of the HTML report: light, dark and print. Text has a contrast of 7 to 1 or more, marks of 3 to 1."""

STYLE = """
:root { --ink: #1b1d21; --soft: #4a4f57; --paper: #ffffff; --rule: #c9ced6; --note: #fff4d6; --edge: #9a5b00;
  --learner: #0b5cad; --local: #a33c00; --other: #5b6470; --measured: #6b2fa0; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #eceef1; --soft: #c0c6cf; --paper: #15181d;
  --rule: #444b55; --note: #33290f; --edge: #f0b84a; --learner: #7db8ff; --local: #ffab73; --other: #aab3bf;
  --measured: #cfa6ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { font-size: 1.3rem; margin-top: 2.2rem; }
h3 { font-size: 1.1rem; margin-top: 1.8rem; }
h1, h2, h3, summary { overflow-wrap: anywhere; }
.warnings { list-style: none; padding: 0; }
.warning { background: var(--note); border-left: .35rem solid var(--edge); margin: .5rem 0; padding: .5rem .8rem; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--rule); }
tbody th { font-weight: 600; }
figure { margin: 1.2rem 0; } figcaption { color: var(--soft); font-size: .95rem; }
svg { display: block; width: 100%; height: auto; max-width: 52rem; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .bar { fill: var(--learner); }
svg polyline { fill: none; stroke-width: 2.2; }
svg line.learner { stroke: var(--learner); stroke-width: 2.2; }
svg polyline.learner { stroke: var(--learner); }
svg polyline.local { stroke: var(--local); stroke-dasharray: 7 4; }
svg polyline.other { stroke: var(--other); stroke-dasharray: 2 3; }
svg polyline.measured { stroke: var(--measured); }
svg .mark { stroke: var(--paper); stroke-width: 1; }
svg .mark.learner { fill: var(--learner); } svg .mark.local { fill: var(--local); }
svg .mark.other { fill: var(--other); } svg .mark.measured { fill: var(--measured); }
code { overflow-wrap: anywhere; } footer { border-top: 1px solid var(--rule); margin-top: 2.5rem; color: var(--soft); }
@media screen and (max-width: 40rem) { th, td { padding-right: .5rem; } table { font-size: .9rem; }
  figure { overflow-x: auto; } svg { min-width: 34rem; } figcaption { position: sticky; left: 0; } }
@media print { @page { margin: 16mm; } body { font-size: 10pt; } main { max-width: none; padding: 0; }
  h1, h2, h3, caption { break-after: avoid; } section + section { break-before: page; }
  figcaption { font-size: 9.5pt; } figure, tr, .warning { break-inside: avoid; } .table { overflow: visible; }
  .warning, svg * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
