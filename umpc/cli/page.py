"""A report as one HTML file that needs nothing else: no script, no picture, no font from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from umpc.cli.show import SETS, evaluated
from umpc.errors import ConfigError
from umpc.protocols.registry import find_protocol
from umpc.study.report import Moment, Report

WIDTH, ROW, MARGIN = 720, 22, 110
COLORS = {
    "connect": "#b8c4d0",
    "propose": "#8fa8c2",
    "agree": "#6c8fb3",
    "prepare": "#d9a441",
    "evaluate": "#3b7a57",
    "release": "#a23b3b",
    "ask": "#6b4c8a",
}
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; } .quiet { color: #5b6b7b; }
.value { font-size: 2.4rem; font-weight: 600; margin: .5rem 0 0; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .25rem .75rem .25rem 0; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } tr { border-bottom: 1px solid #e3e8ed; }
code { background: #f2f5f7; padding: .1rem .3rem; overflow-wrap: anywhere; } svg { width: 100%; height: auto; }
"""


def save_page(report: Report, path: Path) -> None:
    """Raises: ConfigError where the file cannot be written."""
    try:
        path.write_text(page(report), encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{path}: the report was to be written there: {error}; it is printed above"
        ) from error


def page(report: Report) -> str:
    title = f"{report.statistic} of study {report.study}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="quiet">study {report.study_hash}{" · replayed from stored shares" if report.replayed else ""}</p>',
        *_estimate(report),
        "<h2>Privacy</h2>",
        _table(_privacy(report)),
        "<h2>What was computed</h2>",
        *(f"<p><code>{escape(entry.kernel)}</code></p>" for entry in report.sums),
        _table(_sets(report)),
        "<h2>Who took part</h2>",
        _table([(name, f"{count:,} records") for name, count in _participants(report)]),
    ]
    if not report.replayed:
        body += ["<h2>What it cost</h2>", _costs(report), *_timeline(report.timeline)]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _estimate(report: Report) -> list[str]:
    if report.estimate is None:
        return ['<p class="value">no value</p>', f"<p>{escape(report.note)}</p>"]
    return [
        f'<p class="value">{report.estimate:.6g}</p>',
        f"<p>95 % interval of the noise {report.low:.5g} … {report.high:.5g}; standard deviation "
        f"{report.noise_std:.3g} from noise ({escape(find_protocol(report.protocol).describe_noise(report.noise))}), and at most "
        f"{report.sampling_std_bound:.3g} from taking {report.edges:,} of {report.sets:,} "
        f"{SETS.get(report.degree, 'sets')}.</p>",
        _error_bars(report),
    ]


def _error_bars(report: Report) -> str:
    """The estimate, its interval from noise, and that interval widened by two deviations of sampling."""
    wide = 2 * report.sampling_std_bound
    low, high = report.low - wide, report.high + wide
    if not low < high:
        return ""

    def x(value: float) -> float:
        return MARGIN + (WIDTH - 2 * MARGIN) * (value - low) / (high - low)

    inner = x(report.high) - x(report.low)
    bars = [
        f'<rect x="{x(low):.1f}" y="22" width="{x(high) - x(low):.1f}" height="8" fill="#dfe6ec"/>',
        f'<rect x="{x(report.low):.1f}" y="20" width="{inner:.1f}" height="12" fill="#8fa8c2"/>',
        f'<circle cx="{x(report.estimate):.1f}" cy="26" r="6" fill="#a23b3b"/>',
        *(
            f'<text x="{x(v):.1f}" y="50" text-anchor="middle" font-size="12">{v:.4g}</text>'
            for v in (low, high)
        ),
    ]
    label = "the estimate, the 95 % interval of its noise, and with sampling"
    return f'<svg viewBox="0 0 {WIDTH} 58" role="img" aria-label="{label}">{"".join(bars)}</svg>'


def _privacy(report: Report) -> list[tuple[str, str]]:
    protocol = find_protocol(report.protocol)
    return [
        ("epsilon, delta", f"{report.epsilon:g}, {report.delta:.3g}, against replacing one record"),
        (f"nodes, of {report.nodes}", protocol.describe_collusion(report.max_colluding)),
        ("most sets that a record is in", f"{report.max_degree:,}"),
        (
            "protocol",
            f"{report.protocol}, {evaluated(report)}, preprocessing: {report.preprocessing}",
        ),
    ]


def _sets(report: Report) -> list[tuple[str, str]]:
    rows = [
        ("estimator", report.estimator),
        ("joint seed", report.joint_seed or "not known to a replay"),
    ]
    for number, entry in enumerate(report.sums, 1):
        shown = f"{entry.mean:.6g} ± {entry.noise_std:.2g} noise, epsilon {entry.epsilon:.3g}"
        rows.append((f"mean of sum {number}" if len(report.sums) > 1 else "released mean", shown))
    return rows


def _participants(report: Report) -> list[tuple[str, int]]:
    names = [moment.node for moment in report.timeline if moment.step == "propose"]
    names = names or [f"node {number}" for number in range(1, len(report.records_by_node) + 1)]
    return list(zip(names, report.records_by_node, strict=False))


def _costs(report: Report) -> str:
    rows = [
        ("rounds", f"{report.rounds}", f"{report.rounds_predicted}"),
        ("bytes online", f"{report.bytes_online:,}", f"{report.bytes_online_predicted:,}"),
        ("bytes offline", f"{report.bytes_offline:,}", f"{report.bytes_offline_predicted:,}"),
        ("seconds online", f"{report.seconds_online:.3f}", ""),
        ("seconds offline", f"{report.seconds_offline:.3f}", ""),
        ("seconds in all", f"{report.seconds_total:.3f}", ""),
    ]
    cells = "".join(
        f'<tr><td>{a}</td><td class="number">{b}</td><td class="number">{c}</td></tr>'
        for a, b, c in rows
    )
    return f"<table><tr><th></th><th>measured</th><th>predicted</th></tr>{cells}</table>"


def _timeline(moments: Sequence[Moment]) -> list[str]:
    """Who was asked what when, and answered when: a row a node, a bar a step."""
    if not moments:
        return []
    nodes = list(dict.fromkeys(moment.node for moment in moments))
    end = max(moment.answered for moment in moments) or 1.0
    scale = (WIDTH - MARGIN - 10) / end
    parts = []
    for row, node in enumerate(nodes):
        y = row * ROW + 16
        parts.append(f'<text x="0" y="{y + 11}" font-size="12">{escape(node[:16])}</text>')
        for moment in (m for m in moments if m.node == node):
            x, width = (
                MARGIN + moment.asked * scale,
                max(1.0, (moment.answered - moment.asked) * scale),
            )
            about = f"{moment.step}: {moment.asked:.3f} s to {moment.answered:.3f} s"
            color = COLORS.get(moment.step, "#888888")
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 8}" fill="{color}">'
                f"<title>{escape(about)}</title></rect>"
            )
    bottom = len(nodes) * ROW + 16
    parts.append(f'<text x="{MARGIN}" y="{bottom + 14}" font-size="12">0 s</text>')
    parts.append(
        f'<text x="{WIDTH - 10}" y="{bottom + 14}" font-size="12" text-anchor="end">{end:.2f} s</text>'
    )
    steps = dict.fromkeys(moment.step for moment in moments)
    legend = " ".join(
        f'<span style="color:{COLORS.get(step, "#888888")}">■</span> {escape(step)}'
        for step in steps
    )
    svg = f'<svg viewBox="0 0 {WIDTH} {bottom + 22}" role="img" aria-label="steps over time">{"".join(parts)}</svg>'
    return ["<h2>Steps over time</h2>", f"<p>{legend}</p>", svg]


def _table(rows: Iterable[tuple[str, str]]) -> str:
    return (
        "<table>"
        + "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in rows)
        + "</table>"
    )
