"""Checks that every page must pass in the browser: names, structure, contrast, layout."""


def unnamed(tab):
    """Elements that take the focus but have no name in the browser's accessibility tree."""
    found = []
    for node in tab.call("Accessibility.getFullAXTree")["nodes"]:
        properties = {p["name"]: p["value"].get("value") for p in node.get("properties", [])}
        role = node.get("role", {}).get("value")
        if properties.get("focusable") and role not in ("RootWebArea", "main") and not node.get("name", {}).get("value"):
            found.append(role)
        if role in ("img", "slider", "table", "region", "navigation") and not node.get("name", {}).get("value"):
            found.append(role)
    return found


def structure(tab):
    """Errors in landmarks, headings, ids and tables."""
    return tab.run("""(() => {
        const bad = [];
        const all = (s) => [...document.querySelectorAll(s)];
        for (const landmark of ["header", "main", "nav", "footer", "h1"])
            if (all(landmark).length !== 1) bad.push(`${all(landmark).length} ${landmark}`);
        if (!document.documentElement.lang || !document.title) bad.push("no language or title");
        let level = 0;
        for (const e of all("h1, h2, h3, h4")) {
            if (+e.tagName[1] > level + 1) bad.push(`heading ${e.textContent} after level ${level}`);
            level = +e.tagName[1];
            if (!e.textContent.trim()) bad.push("empty heading");
        }
        const ids = all("[id]").map((e) => e.id);
        for (const id of new Set(ids)) if (ids.filter((i) => i === id).length > 1) bad.push(`id ${id} twice`);
        for (const e of all("[aria-labelledby]")) if (!document.getElementById(e.getAttribute("aria-labelledby"))) bad.push("label is not there");
        for (const e of all("nav a")) if (!document.querySelector(e.getAttribute("href"))) bad.push(`link ${e.href} leads nowhere`);
        for (const e of all("table")) {
            if (!e.caption || !e.caption.textContent.trim()) bad.push("table without caption");
            if ([...e.querySelectorAll("th")].some((th) => !th.scope)) bad.push("th without scope");
        }
        for (const e of all("*")) if ([...e.attributes].some((a) => a.name.startsWith("on"))) bad.push(`handler in ${e.tagName}`);
        return bad;
    })()""")


def low_contrast(tab):
    """Texts whose contrast with their background is below 4.5 : 1 (WCAG AA)."""
    return tab.run("""(() => {
        const parts = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
        const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const behind = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
            if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
        const found = new Set();
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        let looked = 0;
        while (walk.nextNode()) {
            const e = walk.currentNode.parentElement, style = getComputedStyle(e);
            if (!walk.currentNode.data.trim() || ["SCRIPT", "STYLE", "NOSCRIPT", "title"].includes(e.tagName)) continue;
            if (!e.getClientRects().length) continue;
            looked++;
            const front = parts(e instanceof SVGElement ? style.fill : style.color).slice(0, 3);
            const [a, b] = [light(front), light(behind(e))].sort((x, y) => y - x);
            const ratio = (a + 0.05) / (b + 0.05);
            if (ratio < 4.5) found.add(`${ratio.toFixed(2)} ${e.tagName}.${e.getAttribute("class")} ${walk.currentNode.data.slice(0, 30)}`);
        }
        if (looked < 200) found.add(`only ${looked} texts were looked at`);
        return [...found];
    })()""")


def overflowing(tab):
    """Elements that extend beyond the window, except inside scrollable ones."""
    return tab.run("""(() => {
        const width = document.documentElement.clientWidth, found = [];
        if (document.documentElement.scrollWidth > width) found.push(`page ${document.documentElement.scrollWidth} > ${width}`);
        for (const e of document.querySelectorAll("body *")) {
            if (e.closest(".scroll, nav, pre, .skip, legend") || e.tagName === "title") continue;
            const box = e.getBoundingClientRect();
            if (box.width && (box.right > width + 1 || box.left < -1)) found.push(`${e.tagName}.${e.getAttribute("class")} ${Math.round(box.left)}..${Math.round(box.right)} of ${width}: ${e.textContent.slice(0, 40)}`);
        }
        return found.slice(0, 20);
    })()""")
