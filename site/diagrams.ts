/**
 * Mermaid fences as SVG, drawn once by a real browser and kept by their source. Colours are variables of the site's style sheet, so one
 * drawing serves light and dark. Where no browser can run, a fence stays what it is: its source.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RunningBrowser, startBrowser } from '../scripts/browser/devtools.ts'
import { findBrowser } from '../scripts/browser/find.ts'
import { root } from '../scripts/lib/files.ts'
import { html } from './html.ts'
import type { Packages } from './packages.ts'

const cache = join(root, '.cache', 'diagrams')

/** Mermaid's names of colours by the variable of the style sheet that they become. */
const COLOURS: Readonly<Record<string, readonly string[]>> = {
  fill: [
    'primaryColor',
    'mainBkg',
    'nodeBkg',
    'actorBkg',
    'labelBoxBkgColor',
    'stateBkg',
    'secondaryColor',
    'tertiaryColor',
    'background',
  ],
  line: [
    'primaryBorderColor',
    'nodeBorder',
    'actorBorder',
    'labelBoxBorderColor',
    'secondaryBorderColor',
    'tertiaryBorderColor',
    'stateBorder',
  ],
  text: [
    ...[
      'primaryTextColor',
      'nodeTextColor',
      'actorTextColor',
      'labelTextColor',
      'textColor',
      'secondaryTextColor',
      'tertiaryTextColor',
    ],
    ...['signalTextColor', 'loopTextColor', 'noteTextColor', 'titleColor', 'stateLabelColor', 'transitionLabelColor'],
  ],
  arrow: [
    'lineColor',
    'signalColor',
    'actorLineColor',
    'transitionColor',
    'arrowheadColor',
    'defaultLinkColor',
    'specialStateColor',
  ],
  note: ['noteBkgColor', 'clusterBkg', 'compositeBackground', 'altBackground', 'activationBkgColor'],
  edge: ['noteBorderColor', 'clusterBorder', 'activationBorderColor', 'compositeBorder'],
  page: ['edgeLabelBackground', 'labelBackground', 'labelBackgroundColor', 'compositeTitleBackground'],
}

/** A colour that nothing else has stands for each variable while mermaid computes. */
const STAND_INS = new Map(Object.keys(COLOURS).map((name, at) => [name, `#f1e2${(0xa1 + at).toString(16)}`]))

const SETTINGS = {
  startOnLoad: false,
  securityLevel: 'strict',
  theme: 'base',
  fontFamily: '"Figtree Variable", sans-serif',
  htmlLabels: false,
  themeCSS: [
    '.node > *, .actor, .note, .statediagram-state * { filter: none !important }',
    '.node rect, rect.actor { rx: 8px; ry: 8px }',
    '.statediagram-state .label text { text-anchor: middle }',
    // Arrows do not run through their own words.
    `.edgeLabel rect, .edgeLabel .background { opacity: 1 !important; fill: ${STAND_INS.get('page')} !important }`,
  ].join(' '),
  flowchart: { htmlLabels: false, curve: 'basis', nodeSpacing: 36, rankSpacing: 44, padding: 14, wrappingWidth: 340 },
  sequence: { actorMargin: 60, height: 50, messageMargin: 34, mirrorActors: false, useMaxWidth: true },
  themeVariables: {
    fontSize: '15px',
    ...Object.fromEntries(Object.entries(COLOURS).flatMap(([name, theirs]) => theirs.map(each => [each, STAND_INS.get(name)]))),
  },
}

const NARROW = '%%{init: { "sequence": { "wrap": true, "width": 130, "actorMargin": 40 } } }%%'

/** The drawings by their sources. One line is said where they cannot be drawn. */
export async function drawDiagrams(sources: readonly string[], packages: Packages): Promise<ReadonlyMap<string, string>> {
  const drawn = new Map<string, string>()
  const version = readFileSync(packages.file('@mermaid-js/tiny/package.json'), 'utf8') + JSON.stringify(SETTINGS) + NARROW
  const fileOf = (source: string) =>
    join(cache, `${createHash('sha256').update(version).update(source).digest('hex').slice(0, 24)}.svg`)
  const missing = [...new Set(sources)].filter(source => !existsSync(fileOf(source)))
  const browser = missing.length === 0 ? undefined : findBrowser()
  if (missing.length > 0 && browser === undefined)
    console.log(`site: no browser can run here, so ${missing.length} diagrams are shown as source`)
  if (browser !== undefined) {
    mkdirSync(cache, { recursive: true })
    const running = await startBrowser(browser)
    try {
      for (const [source, svg] of await draw(running, missing, packages)) writeFileSync(fileOf(source), svg)
    } finally {
      await running.close()
    }
  }
  for (const source of sources) if (existsSync(fileOf(source))) drawn.set(source, readFileSync(fileOf(source), 'utf8'))
  return drawn
}

async function draw(
  browser: RunningBrowser,
  sources: readonly string[],
  packages: Packages,
): Promise<ReadonlyMap<string, string>> {
  const tab = await browser.openTab()
  const font = readFileSync(packages.file('@fontsource-variable/figtree/files/figtree-latin-wght-normal.woff2')).toString(
    'base64',
  )
  await tab.open('data:text/html,<!doctype html><title>diagrams</title>')
  await tab.evaluate(readFileSync(packages.file('@mermaid-js/tiny/dist/mermaid.tiny.js'), 'utf8').concat(';undefined'))
  await tab.evaluate(`(async () => {
    const font = new FontFace('Figtree Variable', 'url(data:font/woff2;base64,${font})', { weight: '300 900' })
    document.fonts.add(await font.load())
    mermaid.initialize(${JSON.stringify(SETTINGS)})
  })()`)
  const drawn = new Map<string, string>()
  for (const source of sources) {
    const id = `diagram-${createHash('sha256').update(source).digest('hex').slice(0, 8)}`
    const render = async (text: string) =>
      String(await tab.evaluate(`mermaid.render('${id}', ${JSON.stringify(text)}).then(({ svg }) => svg)`))
    const svg = await render(source)
    // What is much wider than a page would be too small to read: its messages are broken into lines.
    const wide = source.startsWith('sequenceDiagram') && Number(/viewBox="\S+ \S+ (\S+)/.exec(svg)?.[1]) > 880
    drawn.set(source, withVariables(wide ? await render(`${NARROW}\n${source}`) : svg))
  }
  await tab.close()
  return drawn
}

/** The stand-ins become variables; what mermaid says about width and colour schemes of its own goes. */
function withVariables(svg: string): string {
  const coloured = [...STAND_INS].reduce((text, [name, colour], at) => {
    // Mermaid writes some of them in this form, and one with half its strength.
    const numbers = new RegExp(`rgba?\\(241, ?226, ?${0xa1 + at}(?:, ?[\\d.]+)?\\)`, 'g')
    return text.replaceAll(colour, `var(--diagram-${name})`).replace(numbers, `var(--diagram-${name})`)
  }, svg)
  // Only where numbers stand apart: in the short form `.5.3` a digit less would join two of them.
  const rounded = coloured.replace(/(?<= d=")[^"]{1000,}/g, path =>
    /\.\d*\./.test(path) ? path : path.replace(/\d+\.\d+/g, number => String(Math.round(Number(number) * 10) / 10)),
  )
  // Names of states begin at the left of their boxes, which have a least width; they belong in the middle.
  const centred = rounded.replace(
    /(statediagram-state"[^>]*><rect[^>]*><\/rect><g class="label" style="" transform="translate\()-[\d.]+/g,
    '$10',
  )
  return centred
    .replace(/ style="max-width: ([\d.]+)px;[^"]*"/, ' style="max-width: $1px"')
    .replace(/ role="graphics-document document"/, '')
}

/** A drawing in a page. It can be wider than a small screen, and then scrolls inside itself. */
export function diagramFigure(svg: string): string {
  const kind = / aria-roledescription="([\w-]+)"/.exec(svg)?.[1] ?? ''
  const name = kind.startsWith('sequence') ? 'Sequence diagram' : kind.startsWith('state') ? 'State diagram' : 'Flow chart'
  const inner = svg
    .replace(/ aria-roledescription="[\w-]+"/, '')
    .replace('<svg ', html`<svg role="img" aria-label="${name}" `.text)
  return `<figure class="diagram">${inner}</figure>\n`
}
