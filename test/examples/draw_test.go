//go:build linux

package examples

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// page draws the panels at Grafana's places. It shows the data of the queries, not Grafana's look.
func page(p *prometheus, all []panel, from, to time.Time) string {
	var b strings.Builder
	b.WriteString(`<!doctype html><meta charset="utf-8"><title>Pod network (cniscope)</title><style>
body{background:#111217;color:#ccccdc;font:12px sans-serif;margin:8px;position:relative}
section{position:absolute;background:#181b1f;border:1px solid #2c3235;box-sizing:border-box;padding:6px;overflow:hidden}
h2{font-size:13px;margin:0 0 4px}h1{font-size:15px;margin:4px}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:2px 8px;border-bottom:1px solid #2c3235}
.stat{font-size:28px;text-align:center;padding-top:14px}.key{white-space:nowrap;margin-right:10px}</style>`)
	const column, line = 64, 30
	for _, panel := range all {
		g := panel.GridPos
		fmt.Fprintf(&b, "<section style='left:%dpx;top:%dpx;width:%dpx;height:%dpx'>", g.X*column, g.Y*line, g.W*column-6, g.H*line-4)
		switch title := html.EscapeString(panel.Title); panel.Type {
		case "row":
			fmt.Fprintf(&b, "<h1>%s</h1>", title)
		case "stat":
			fmt.Fprintf(&b, "<h2>%s</h2><div class=stat>%s</div>", title, number(last(p.query(panel.Targets[0].Expr)), panel.FieldConfig.Defaults.Unit))
		case "table":
			fmt.Fprintf(&b, "<h2>%s</h2>%s", title, rows(p.query(panel.Targets[0].Expr)))
		default:
			fmt.Fprintf(&b, "<h2>%s</h2>", title)
			b.WriteString(plot(p, panel, from, to, g.W*column-24, g.H*line-72))
		}
		b.WriteString("</section>")
	}
	return b.String()
}

func last(all []sample) float64 {
	if len(all) == 0 {
		return 0
	}
	v, _ := strconv.ParseFloat(fmt.Sprint(all[0].Value[1]), 64)
	return v
}

func number(v float64, unit string) string {
	switch unit {
	case "s":
		return time.Duration(v * float64(time.Second)).Round(time.Millisecond).String()
	case "percentunit":
		return fmt.Sprintf("%.1f %%", v*100)
	case "bytes":
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func rows(all []sample) string {
	var b strings.Builder
	b.WriteString("<table><tr><th>Node<th>Cause<th>Pods waited</tr>")
	for _, s := range all {
		fmt.Fprintf(&b, "<tr><td>%s<td>%s<td>%s</tr>", s.Metric["instance"], s.Metric["cause"], number(last([]sample{s}), "s"))
	}
	return b.String() + "</table>"
}

type curve struct {
	name   string
	values map[int64]float64
}

func curves(p *prometheus, panel panel, from, to time.Time) (all []curve) {
	for _, target := range panel.Targets {
		var answer struct{ Result []sample }
		p.ask(&answer, "query_range", "query", filled.Replace(target.Expr), "start", fmt.Sprint(from.Unix()), "end", fmt.Sprint(to.Unix()), "step", "1")
		for _, s := range answer.Result {
			name := target.LegendFormat
			for label, value := range s.Metric {
				name = strings.ReplaceAll(name, "{{"+label+"}}", value)
			}
			c := curve{cmp.Or(name, panel.Title), map[int64]float64{}}
			for _, pair := range s.Values {
				v, err := strconv.ParseFloat(fmt.Sprint(pair[1]), 64)
				if at, ok := pair[0].(float64); ok && err == nil && v == v {
					c.values[int64(at)] = v
				}
			}
			all = append(all, c)
		}
	}
	return all
}

// plot draws lines, or stacked areas if the panel stacks.
func plot(p *prometheus, panel panel, from, to time.Time, width, height int) string {
	all, stacked := curves(p, panel, from, to), panel.FieldConfig.Defaults.Custom.Stacking.Mode == "normal"
	seconds, top := max(1, to.Unix()-from.Unix()), 0.0
	base := map[int64]float64{}
	for _, c := range all {
		for at, v := range c.values {
			if stacked {
				base[at] += v
				v = base[at]
			}
			top = max(top, v)
		}
	}
	clear(base)
	var shapes, keys strings.Builder
	for i, c := range all {
		var points, under []string
		for _, at := range slices.Sorted(maps.Keys(c.values)) {
			x, low := float64(at-from.Unix())/float64(seconds)*float64(width), 0.0
			if stacked {
				low = base[at]
				base[at] += c.values[at]
			}
			y := func(v float64) float64 { return float64(height) * (1 - v/max(top, 1e-9)) }
			points = append(points, fmt.Sprintf("%.1f,%.1f", x, y(low+c.values[at])))
			under = append(under, fmt.Sprintf("%.1f,%.1f", x, y(low)))
		}
		color, fill := fmt.Sprintf("hsl(%d 65%% 60%%)", i*67%360), "none"
		if stacked {
			fill = color
			slices.Reverse(under)
			points = append(points, under...)
		}
		fmt.Fprintf(&shapes, "<polyline points='%s' fill='%s' stroke='%s'/>", strings.Join(points, " "), fill, color)
		fmt.Fprintf(&keys, "<span class=key><b style='color:%s'>■</b> %s</span> ", color, html.EscapeString(c.name))
	}
	return fmt.Sprintf("<div>%s</div><svg width=%d height=%d>%s</svg><div>%s</div>", number(top, panel.FieldConfig.Defaults.Unit), width, height, &shapes, &keys)
}
