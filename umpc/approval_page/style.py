"""The style of the approvals' page: light and dark, wide and narrow."""

from umpc.reporting.page_style import BASE

OWN = """
:root {
  --card: #f5f7f9; --spent: #a23b3b; --reserved: #b57d14; --left: #3b7a57;
  --warn: #8f1d1d; --warned: #fdeaea; --yes: #23613f; --no: #8f1d1d; --on: #fff;
}
@media (prefers-color-scheme: dark) { :root {
  --card: #1c232b; --spent: #e07b73; --reserved: #e0b860; --left: #6fbf92;
  --warn: #ffb4ab; --warned: #3b1a1a; --yes: #8fd6ae; --no: #ffb4ab; --on: #10151a;
} }
h3 { font-size: 1.1rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
a { color: inherit; }
article { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: 1rem; margin: 0 0 1rem; }
dl { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: .2rem 1rem; margin: 0 0 1rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
.warn { color: var(--warn); background: var(--warned); padding: .4rem .6rem; border-radius: .3rem;
  font-weight: 600; overflow-wrap: anywhere; }
dl .warn { grid-column: 1 / -1; }
form { margin: .5rem 0; }
button, input { font: inherit; padding: .5rem 1rem; border-radius: .4rem; box-sizing: border-box; }
button { border: 0; color: var(--on); cursor: pointer; font-weight: 600; }
.accept { background: var(--yes); }
.refuse { background: var(--no); }
label { display: block; }
input { width: 100%; margin: .3rem 0; border: 1px solid var(--quiet); color: var(--ink);
  background: var(--paper); }
summary { cursor: pointer; padding: .3rem 0; }
svg { width: 100%; height: 1.6rem; display: block; border-radius: .3rem; }
svg rect { stroke: var(--paper); stroke-width: 2px; vector-effect: non-scaling-stroke; }
.spent { fill: var(--spent); } .reserved { fill: var(--reserved); } .left { fill: var(--left); }
ul { list-style: none; padding: 0; margin: .3rem 0; }
li { overflow-wrap: anywhere; }
.history li { border-bottom: 1px solid var(--line); padding: .4rem 0; }
@media (max-width: 600px) {
  dl { display: block; }
  dd { margin: 0 0 .5rem; }
  form > button { width: 100%; }
}
"""
STYLE = BASE + OWN
