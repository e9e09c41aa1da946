/**
 * Variants that a page shows one after the other become tabs. Comments mark them, which GitHub does not show:
 *
 * - `<!-- tabs: SDK v1 | Vivarium -->` before as many fences as it has names;
 * - `<!-- tabs -->` … `<!-- end tabs -->` around parts that each begin with a paragraph in bold words: `**From a tarball.** …`
 *
 * Without scripts the variants are shown one below the other, as in the file.
 */
import { html } from './html.ts'
import type { Token } from './packages.ts'

const START = /^<!--\s*tabs(?::\s*(.+?))?\s*-->\s*$/
const END = /^<!--\s*end tabs\s*-->\s*$/

export class TabError extends Error {}

/** Marks the tabs of a page in place. */
export function markTabs(tokens: Token[]): void {
  for (const [at, token] of tokens.entries()) {
    const [comment, labels] = START.exec(token.type === 'html_block' ? token.content : '') ?? []
    if (comment === undefined) continue
    if (labels === undefined) wrapParts(tokens, at)
    else wrapFences(tokens, at, labels.split('|'))
  }
}

const open = (label: string): string =>
  html`<div class="tab" data-label="${label.trim()}"><p class="tab-label">${label.trim()}</p>\n`.text

function wrapFences(tokens: Token[], at: number, labels: readonly string[]): void {
  const fences = tokens.slice(at + 1, at + 1 + labels.length)
  if (fences.length < labels.length || fences.some(({ type }) => type !== 'fence'))
    throw new TabError(`${labels.length} fences must follow the comment "tabs: ${labels.join('|')}"`)
  insert(tokens, at, ['<div class="tabs">\n'])
  for (const [index, label] of labels.entries()) {
    const place = tokens.indexOf(fences[index] as Token)
    insert(tokens, place - 1, [open(label)], true)
    insert(tokens, tokens.indexOf(fences[index] as Token), [index === labels.length - 1 ? '</div></div>\n' : '</div>\n'], true)
  }
}

function wrapParts(tokens: Token[], at: number): void {
  const end = tokens.findIndex((token, index) => index > at && token.type === 'html_block' && END.test(token.content))
  if (end < 0) throw new TabError('the comment "tabs" has no "end tabs"')
  let first = true
  const parts = tokens.slice(at + 1, end)
  const level = tokens[at]?.level
  insert(tokens, end, ['</div></div>\n'])
  for (const [index, token] of parts.entries()) {
    const label = token.type === 'paragraph_open' && token.level === level ? leadOf(parts[index + 1]) : undefined
    if (label === undefined) continue
    insert(tokens, tokens.indexOf(token) - 1, [`${first ? '' : '</div>\n'}${open(label)}`], true)
    first = false
  }
  if (first) throw new TabError('between "tabs" and "end tabs" a part begins with words in bold')
  insert(tokens, at, ['<div class="tabs">\n'])
}

/** The bold words at the beginning of a paragraph, which are then taken out of it: the tab bears them. */
function leadOf(inline: Token | undefined): string | undefined {
  const [, opening, text, closing, rest] = [
    undefined,
    ...(inline?.children ?? []).filter(({ type, content }) => type !== 'text' || content !== ''),
  ]
  if (opening?.type !== 'strong_open' || closing?.type !== 'strong_close' || text === undefined) return undefined
  const label = text.content.replace(/[.:]$/, '')
  const children = inline?.children ?? []
  children.splice(0, children.indexOf(closing) + 1)
  if (rest !== undefined) rest.content = rest.content.trimStart()
  return label
}

/** Replaces the token at `at` by markup, or puts markup behind it. */
function insert(tokens: Token[], at: number, markup: readonly string[], behind = false): void {
  const model = tokens[Math.max(at, 0)] as Token
  const made = markup.map(content =>
    Object.assign(Object.create(Object.getPrototypeOf(model)), model, {
      type: 'html_block',
      content,
      children: null,
      hidden: false,
    }),
  )
  tokens.splice(behind ? at + 1 : at, behind ? 0 : 1, ...made)
}
