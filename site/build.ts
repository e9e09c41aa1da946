/** Makes the site: reads the pages, draws what is drawn, and writes every page as HTML and as Markdown. */
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from '../scripts/lib/files.ts'
import { writeAssets } from './assets.ts'
import { withCharts } from './charts.ts'
import { drawDiagrams } from './diagrams.ts'
import { frontPage } from './front.ts'
import { html, raw } from './html.ts'
import { article, documentOf, type Frame, sectionOf, twinOf } from './layout.ts'
import { createLinks, relative } from './links.ts'
import { findDiagrams, findLinks, type Passage, render, type Setting } from './markdown.ts'
import { loadPackages } from './packages.ts'
import { type Page, readPages, sourcePages } from './pages.ts'
import { entriesOf } from './search-index.ts'
import { sectionFront, sectionText } from './section-front.ts'
import { type Shot, shotFigure, shotsOf } from './shots/table.ts'
import { arrange, SECTIONS } from './structure.ts'
import { logo } from './theme/logo.ts'
import { llmsFiles, twinText } from './twins.ts'

export interface Built {
  readonly folder: string
  readonly pages: readonly Page[]
  readonly diagrams: number
}

export async function buildSite(folder: string, shots: readonly Shot[] = [], base = '/'): Promise<Built> {
  const packages = await loadPackages()
  const written = await readPages()
  const links = createLinks(new Set(written.map(({ path }) => path)))
  for (const page of written) for (const link of findLinks(page, packages)) links.resolve(page.path, link)
  const pages = [...written, ...sourcePages(links.sources)]
  const diagrams = await drawDiagrams([...new Set(pages.flatMap(page => findDiagrams(page, packages)))], packages)
  const setting: Setting = { packages, links, diagrams }

  const draft = `${folder}.${process.pid}`
  rmSync(draft, { recursive: true, force: true })
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(draft, path)), { recursive: true })
    writeFileSync(join(draft, path), content)
  }
  mkdirSync(join(draft, 'assets'), { recursive: true })
  const arranged = arrange(pages.filter(page => !page.address.startsWith('source/') || page.address === 'source/examples/'))
  const { description, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    description: string
    version: string
  }
  const frame: Frame = { arranged, version, assets: await writeAssets(join(draft, 'assets'), packages) }
  for (const { file, name } of shots) copyFileSync(file, join(draft, 'assets', `${name}.webp`))

  const searched: { page: Page; section: string; passages: readonly Passage[] }[] = []
  for (const page of pages) {
    const { body, passages } = bodyOf(page, frame, setting, shots)
    searched.push({ page, section: sectionOf(page, arranged)?.section.title ?? 'Vivarium', passages })
    write(fileOf(page.address), documentOf(page, summaryOf(page, passages, description), body, frame))
    const twin = isFront(page) ? sectionText(page, arranged) : twinText(page, links)
    write(twinOf(page.address), twin)
    if (page.address === '' || page.address.endsWith('/')) write(`${page.address}index.html.md`, twin)
  }
  write('search.json', JSON.stringify(entriesOf(searched)))
  for (const [name, text] of Object.entries(llmsFiles(written, links, description))) write(name, text)
  write('404.html', lost(base, frame))
  rmSync(folder, { recursive: true, force: true })
  renameSync(draft, folder)
  return { folder, pages, diagrams: diagrams.size }
}

const fileOf = (address: string): string => (address === '' || address.endsWith('/') ? `${address}index.html` : `${address}.html`)

/** Whether a page has no text of its own: it lists the pages of its section. */
const isFront = (page: Page): boolean => page.path.endsWith('/')

function bodyOf(
  page: Page,
  frame: Frame,
  setting: Setting,
  shots: readonly Shot[],
): { body: ReturnType<typeof html>; passages: readonly Passage[] } {
  if (page.address === '') {
    const { body, rendered } = frontPage(
      page,
      setting,
      shotsOf(shots, page.address).map(shot => shotFigure(shot, relative('', '')))[0],
    )
    return { body, passages: rendered.passages }
  }
  if (isFront(page)) return { body: article(page, sectionFront(page, frame.arranged), [], frame), passages: [] }
  const rendered = render(page, setting)
  const charted = page.path === 'docs/performance.md' ? withCharts(rendered.html) : rendered.html
  const shown = shotsOf(shots, page.address).reduce(
    (text, shot) =>
      text.replace(
        new RegExp(`(<h[23] id="${shot.under}">.*?</h[23]>\n(?:<p>.*?</p>\n)?)`, 's'),
        whole => whole + shotFigure(shot, relative(page.address, '')).text,
      ),
    charted,
  )
  return { body: article(page, raw(shown), rendered.headings, frame), passages: rendered.passages }
}

function summaryOf(page: Page, passages: readonly Passage[], otherwise: string): string {
  const about = SECTIONS.find(({ address }) => address === page.address)?.about
  const sentence = /^.{20,}?[.:](?=\s|$)/.exec(passages[0]?.text ?? '')?.[0]
  return (about ?? sentence ?? otherwise).replace(/:$/, '.').slice(0, 200)
}

/** Shown at any address that leads nowhere, so its own links are whole: `base` is where the site lies on its host. */
function lost(base: string, { assets }: Frame): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Page not found · Vivarium</title>
<link rel="icon" href="${base}assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${base}assets/${assets.style}">
<script src="${base}assets/${assets.scheme}" type="module"></script>
</head>
<body>
<main><article><p>${logo(72)}</p><h1>Page not found</h1><p class="lead">Nothing is at this address. Begin at the <a href="${base}">front page</a>.</p></article></main>
</body>
</html>
`.text
}
