/// The page's style sheet: light and dark by the reader's preference, colours that differ in lightness as well as hue.
enum ReportStyle {
    static let sheet = """
        :root{color-scheme:light dark;--bg:#f7f7f5;--card:#fff;--ink:#1b1d21;--soft:#5c626c;--line:#e4e5e8;
        --c0:#0b5fc0;--c1:#c2410c;--c2:#0f7a4a;--c3:#7e3bb0;--c4:#a37404;--c5:#bd2471;--fill:#0b5fc022}
        @media (prefers-color-scheme:dark){:root{--bg:#121316;--card:#1a1c20;--ink:#e9eaec;--soft:#9ba1ab;--line:#2c2f35;
        --c0:#6fb1ff;--c1:#ff9c63;--c2:#56d39b;--c3:#cba0f2;--c4:#efc94d;--c5:#ff8bbf;--fill:#6fb1ff2e}}
        *{box-sizing:border-box}
        body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
        "DejaVu Sans",sans-serif}
        main{max-width:1200px;margin:0 auto;padding:40px 24px 64px}
        h1{font-size:30px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
        h2{font-size:20px;margin:40px 0 12px}
        h3{font-size:16px;margin:0}
        p{margin:4px 0 0;color:var(--soft)}
        .lead{font-size:17px;max-width:70ch}
        .grid2{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,460px),1fr));gap:16px}
        .keys{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:16px;margin:24px 0}
        .card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 20px;margin:0}
        .keys b{display:block;font-size:26px;line-height:1.2;font-variant-numeric:tabular-nums}
        .keys span{color:var(--soft);font-size:13px}
        figure{display:flex;flex-direction:column;gap:10px}
        figcaption p{font-size:13.5px}
        .wide{margin-top:16px}.wide svg{min-width:760px}.scroll:focus-visible{outline:2px solid var(--c0)}h2+p{margin:0 0 12px}
        caption{text-align:left;color:var(--soft);padding:0 7px 6px}tbody th{font-weight:400}
        svg{width:100%;height:auto;overflow:visible}
        svg text{fill:var(--soft);font-size:12px;font-variant-numeric:tabular-nums}
        svg .axis{fill:var(--ink)}
        .mid{text-anchor:middle}.end{text-anchor:end}
        line.grid{stroke:var(--line);stroke-width:1}
        .line{fill:none;stroke-width:2.25;stroke-linejoin:round;stroke-linecap:round}
        .dashed{stroke-dasharray:5 5;stroke-width:1.5}
        ul.card{margin:0 0 24px;padding:14px 20px 14px 38px}
        ul.card li{margin:3px 0;max-width:100ch}
        .area{fill:var(--fill);stroke:var(--c0);stroke-width:1.5;stroke-linejoin:round}
        .s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}
        .s5{stroke:var(--c5)}.s6{stroke:var(--soft)}
        .f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}.f5{fill:var(--c5)}
        .legend{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:13px;color:var(--soft)}
        svg.mark{width:34px;height:12px;margin-right:7px;vertical-align:middle}
        .legend i{display:inline-block;width:14px;height:3px;border-radius:2px;margin-right:7px;vertical-align:middle}
        .c0{background:var(--c0)}.c1{background:var(--c1)}.c2{background:var(--c2)}.c3{background:var(--c3)}
        .c4{background:var(--c4)}.c5{background:var(--c5)}
        .c6{background:repeating-linear-gradient(90deg,var(--soft) 0 4px,transparent 4px 6px)}
        .scroll{overflow-x:auto}
        table{border-collapse:collapse;width:100%;font-size:12.5px;font-variant-numeric:tabular-nums}
        th,td{padding:5px 7px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
        th{color:var(--soft);font-weight:600}
        td.bar,th.bar{width:40%;min-width:60px;text-align:left;white-space:normal}td.bar i{display:block;height:10px;border-radius:3px;background:var(--c0)}
        .s1{stroke-dasharray:10 4}.s2{stroke-dasharray:3 4}.s3{stroke-dasharray:10 4 3 4}.s4{stroke-dasharray:1 5}
        .s5{stroke-dasharray:16 5}
        @media (max-width:520px){main{padding:24px 12px 40px}.card{padding:14px 12px}svg text{font-size:17px}}
        tr.best td,tr.best th{font-weight:700;color:var(--ink)}
        footer{margin-top:40px;font-size:13.5px;color:var(--soft);max-width:85ch}
        """
}
