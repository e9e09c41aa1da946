/** A page of Markdown as HTML: anchors as GitHub makes them, links of the site, alerts, tabs, coloured code, diagrams. */
import { createAnchors } from '../scripts/lib/anchors.ts'
import { codeBlock, readInfo } from './code.ts'
import { diagramFigure } from './diagrams.ts'
import { html } from './html.ts'
import { type Links, relative } from './links.ts'
import type { Packages, Token } from './packages.ts'
import type { Page } from './pages.ts'
import { markTabs, TabError } from './tabs.ts'

export interface Heading {
  readonly level: number
  readonly anchor: string
  readonly title: string
}

/** What stands under one heading. */
export interface Passage {
  readonly anchor: string
  readonly title: string
  text: string
  code: string
}

export interface Rendered {
  readonly html: string
  readonly headings: readonly Heading[]
  readonly passages: readonly Passage[]
}

export interface Setting {
  readonly packages: Packages
  readonly links: Links
  /** Drawn diagrams by their source; one that is missing is shown as source. */
  readonly diagrams: ReadonlyMap<string, string>
}

export function render(page: Page, setting: Setting): Rendered {
  const { packages } = setting
  const tokens = packages.markdown.parse(page.text, {})
  try {
    markTabs(tokens)
  } catch (error) {
    if (error instanceof TabError) throw new Error(`${page.path}: ${error.message}`)
    throw error
  }
  const passages = passagesOf(tokens)
  const headings = markHeadings(tokens)
  for (const [at, token] of tokens.entries()) {
    for (const child of token.children ?? []) if (child.type === 'link_open') markLink(child, page, setting.links)
    if (token.type === 'fence') markFence(token, setting)
    else if (token.type === 'table_open') replace(token, '<div class="table"><table>\n')
    else if (token.type === 'table_close') replace(token, '</table></div>\n')
    else if (token.type === 'th_open') markHeader(tokens, at)
    else if (token.type === 'blockquote_open') markAlert(tokens, at)
  }
  return { html: packages.markdown.renderer.render(tokens, packages.markdown.options, {}), headings, passages }
}

/** The addresses in the repository that a page links to. */
export function findLinks(page: Page, packages: Packages): readonly string[] {
  return packages.markdown
    .parse(page.text, {})
    .flatMap(({ children }) =>
      (children ?? []).flatMap(child => (child.type === 'link_open' ? [child.attrGet('href') ?? ''] : [])),
    )
}

/** The sources of the diagrams of a page. */
export function findDiagrams(page: Page, packages: Packages): readonly string[] {
  return packages.markdown
    .parse(page.text, {})
    .filter(token => token.type === 'fence' && readInfo(token.info).language === 'mermaid')
    .map(({ content }) => content)
}

function replace(token: Token, content: string): void {
  Object.assign(token, { type: 'html_block', content, children: null })
}

function plain(token: Token | undefined): string {
  return (token?.children ?? []).map(({ type, content }) => (type === 'softbreak' ? ' ' : content)).join('')
}

function markHeadings(tokens: readonly Token[]): readonly Heading[] {
  const anchors = createAnchors()
  return tokens.flatMap((token, at) => {
    if (token.type !== 'heading_open') return []
    const title = plain(tokens[at + 1])
    const anchor = anchors(title)
    const close = tokens[at + 2] as Token
    const { tag } = token
    replace(token, `<${tag} id="${anchor}">`)
    const link = html`<a class="anchor" href="#${anchor}" aria-label="${`Link to “${title}”`}">#</a>`
    replace(close, `${tag === 'h1' ? '' : link.text}</${tag}>\n`)
    return [{ level: Number(tag.slice(1)), anchor, title }]
  })
}

function markLink(token: Token, page: Page, links: Links): void {
  const target = links.resolve(page.path, token.attrGet('href') ?? '')
  if (target === undefined) token.attrSet('rel', 'noopener')
  else token.attrSet('href', relative(page.address, target))
}

function markFence(token: Token, { packages, diagrams }: Setting): void {
  const drawn = readInfo(token.info).language === 'mermaid' ? diagrams.get(token.content) : undefined
  replace(token, drawn === undefined ? codeBlock(token.content, token.info, packages).text : diagramFigure(drawn))
}

/** A header without words is a cell for those who hear the table. */
function markHeader(tokens: readonly Token[], at: number): void {
  const [open, inline, close] = tokens.slice(at, at + 3)
  if (plain(inline) !== '') return open?.attrSet('scope', 'col')
  for (const token of [open, close]) if (token !== undefined) token.tag = 'td'
}

const ALERTS = /^\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*/

/** `> [!NOTE]`, as GitHub shows it. */
function markAlert(tokens: readonly Token[], at: number): void {
  const inline = tokens[at + 2]
  const kind = ALERTS.exec(inline?.content ?? '')?.[1]
  if (kind === undefined || inline?.children === undefined || inline.children === null) return
  const [mark, second] = inline.children
  inline.children.splice(0, mark?.content.replace(ALERTS, '') === '' && second?.type === 'softbreak' ? 2 : 1)
  const level = tokens[at]?.level
  const close = tokens.findIndex((token, index) => index > at && token.type === 'blockquote_close' && token.level === level)
  const name = kind.charAt(0) + kind.slice(1).toLowerCase()
  replace(
    tokens[at] as Token,
    html`<div class="alert ${kind.toLowerCase()}" role="note"><p class="alert-name">${name}</p>\n`.text,
  )
  replace(tokens[close] as Token, '</div>\n')
}

/** The words of a page by the heading over them; main headings and those below, so that a hit leads near. */
function passagesOf(tokens: readonly Token[]): readonly Passage[] {
  const anchors = createAnchors()
  const passages: Passage[] = []
  for (const [at, token] of tokens.entries()) {
    const last = passages.at(-1)
    if (token.type === 'heading_open') {
      const title = plain(tokens[at + 1])
      passages.push({ anchor: token.tag === 'h1' ? '' : anchors(title), title, text: '', code: '' })
      if (token.tag === 'h1') anchors(title)
    } else if (last === undefined) continue
    else if (token.type === 'inline' && tokens[at - 1]?.type !== 'heading_open') last.text += `${plain(token)} `
    else if (token.type === 'fence' && !token.info.startsWith('mermaid')) last.code += `${token.content} `
  }
  return passages
}
