/** What every page has around its text: head, sections, pages of the section, the page's own headings, neighbours. */
import type { Assets } from './assets.ts'
import { html, type Markup, raw } from './html.ts'
import { relative } from './links.ts'
import type { Heading } from './markdown.ts'
import type { Page } from './pages.ts'
import { type arrange, SECTIONS } from './structure.ts'
import { logo } from './theme/logo.ts'

export type Arranged = ReturnType<typeof arrange<Page>>

export interface Frame {
  readonly arranged: Arranged
  readonly assets: Assets
  readonly version: string
}

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'"

/** `address` of the section that a page is in; source code is among the reference. */
export function sectionOf(page: Page, arranged: Arranged): Arranged[number] | undefined {
  return arranged.find(
    ({ section, groups }) =>
      section.address === page.address ||
      groups.some(({ pages }) => pages.includes(page)) ||
      (section.address === 'reference/' && page.address.startsWith('source/')),
  )
}

/** The address of the Markdown of a page. */
export const twinOf = (address: string): string =>
  address === '' || address.endsWith('/') ? `${address}index.md` : `${address}.md`

export function documentOf(page: Page, summary: string, body: Markup, frame: Frame): string {
  const to = (address: string) => relative(page.address, address)
  const current = sectionOf(page, frame.arranged)
  const title = page.address === '' ? 'Vivarium: the live MCP runtime' : `${page.title} · Vivarium`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${raw(POLICY)}">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<meta name="description" content="${summary}">
<link rel="icon" href="${to('assets/icon.svg')}" type="image/svg+xml">
<link rel="alternate" type="text/markdown" href="${to(twinOf(page.address))}" title="${page.title}">
<link rel="preload" href="${to('assets/text.woff2')}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="${to(`assets/${frame.assets.style}`)}">
<script src="${to(`assets/${frame.assets.scheme}`)}"></script>
<script type="module" src="${to(`assets/${frame.assets.script}`)}" data-root="${to('')}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header class="top">
<button type="button" class="menu-button" aria-expanded="false" aria-controls="pages"><span class="bars" aria-hidden="true"></span>Menu</button>
<a class="brand" href="${to('')}">${logo(28)}<span>Vivarium</span></a>
<nav class="sections" aria-label="Sections"><ul>${SECTIONS.map(
    section =>
      html`<li><a href="${to(section.address)}"${section === current?.section && raw(' aria-current="true"')}>${section.title}</a></li>`,
  )}</ul></nav>
<div class="tools">
<button type="button" class="search-button" aria-haspopup="dialog">${raw(GLASS)}<span>Search</span><kbd aria-hidden="true">/</kbd></button>
<button type="button" class="scheme-button" aria-label="Dark colours" aria-pressed="false">${raw(MOON)}</button>
</div>
</header>
<div class="columns">
<nav id="pages" class="pages" aria-label="Pages">${frame.arranged.map(each => sectionList(each, page, each === current, to))}</nav>
${body}
</div>
<footer class="foot"><p>Vivarium ${frame.version} · MIT licence</p><p><a href="${to('llms.txt')}">llms.txt</a> · <a href="${to(twinOf(page.address))}">This page as Markdown</a></p></footer>
</body>
</html>
`.text
}

/** Groups are folded, except that of the page itself: a newcomer sees a short list. */
function sectionList({ section, groups }: Arranged[number], page: Page, open: boolean, to: (address: string) => string): Markup {
  const link = (address: string, title: string) =>
    html`<li${isPart(address) && raw(' class="part"')}><a href="${to(address)}"${isAt(page, address) && raw(' aria-current="page"')}>${title}</a></li>`
  const front = section.address === 'compare/' ? 'Which to choose' : 'Overview'
  return html`<details${open && raw(' open')}><summary>${section.title}</summary>
<ul>${link(section.address, front)}${groups.map(({ title, pages }) => {
    const links = pages.filter(each => isListed(each, page)).map(each => link(each.address, labelOf(each)))
    if (title === '') return links
    const shown = pages.some(each => isAt(page, each.address))
    return html`<li><details class="group"${shown && raw(' open')}><summary>${title}</summary><ul>${links}</ul></details></li>`
  })}</ul></details>
`
}

/** The entry of the API that a page is about; a type stands under its entry, at `entry-type`. */
const entryOf = (address: string): string | undefined => /^reference\/api\/([a-z]+)/.exec(address)?.[1]
const isPart = (address: string): boolean => /^reference\/api\/[a-z]+-/.test(address)

/** Types are listed only to those who read about their entry. */
const isListed = ({ address }: Page, page: Page): boolean => !isPart(address) || entryOf(address) === entryOf(page.address)

const isAt = (page: Page, address: string): boolean =>
  page.address === address || (address === 'source/examples/' && page.address.startsWith('source/'))

/** The title as the list of pages shows it: what its section says already is left out. */
export function labelOf({ title }: Page): string {
  const short = title.replace(/^(Tutorial|Errors|Defects): ?/i, '').replace(/^Migrate from /, 'From ')
  return short === title ? title : short.charAt(0).toUpperCase() + short.slice(1)
}

/** A page of text, with its place above it and its headings beside it. */
export function article(page: Page, content: Markup, headings: readonly Heading[], frame: Frame): Markup {
  const to = (address: string) => relative(page.address, address)
  const place = sectionOf(page, frame.arranged)
  const group = place?.groups.find(({ pages }) => pages.includes(page))?.title
  const outline = headings.filter(({ level }) => level === 2 || level === 3)
  return html`<main id="main" tabindex="-1">
<article>
${place !== undefined && html`<p class="place"><a href="${to(place.section.address)}">${place.section.title}</a>${group && html` <span aria-hidden="true">/</span> ${group}`}</p>`}
${content}
</article>
${neighbours(page, place, to)}
</main>
${outline.length > 1 && html`<nav class="outline" aria-label="On this page"><p>On this page</p><ul>${outline.map(({ level, anchor, title }) => html`<li class="level-${level}"><a href="#${anchor}">${title}</a></li>`)}</ul></nav>`}`
}

function neighbours(page: Page, place: Arranged[number] | undefined, to: (address: string) => string): Markup | undefined {
  const pages = place?.groups.flatMap(group => group.pages) ?? []
  const at = pages.indexOf(page)
  const [before, after] = [pages[at - 1], pages[at + 1]]
  if (at < 0 || (before === undefined && after === undefined)) return undefined
  return html`<nav class="neighbours" aria-label="Previous and next page">
${before && html`<a rel="prev" href="${to(before.address)}"><small>Previous</small>${labelOf(before)}</a>`}
${after && html`<a rel="next" href="${to(after.address)}"><small>Next</small>${labelOf(after)}</a>`}
</nav>`
}

const GLASS =
  '<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><circle cx="7" cy="7" r="4.6" fill="none" stroke="currentColor" stroke-width="1.6"/><path d="m10.6 10.6 3.6 3.6" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"/></svg>'
const MOON =
  '<svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true"><circle cx="9" cy="9" r="6.6" fill="none" stroke="currentColor" stroke-width="1.6"/><path d="M9 2.4a6.6 6.6 0 0 1 0 13.2Z" fill="currentColor"/></svg>'
