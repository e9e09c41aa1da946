/**
 * What others wrote, in a prompt: put between marks that say whose it is, so that a model can tell it from what the user said. The
 * marks keep honest readers honest; what a model may do is decided by policy, never by them.
 */
import { clip } from '../../jsonrpc/limits.ts'

const quoteKinds = ['context', 'event', 'resource', 'tool-result', 'tool-description', 'server-prompt', 'server-request'] as const
/** What kind of foreign text is quoted. */
export type QuoteKind = (typeof quoteKinds)[number]

/** A text of a server as it stands in a prompt, with its marks. */
export interface Quote {
  readonly kind: QuoteKind
  readonly about: ReadonlyMap<string, string>
  readonly text: string
}

const kinds = quoteKinds.join('|')
/** Characters that nobody sees may stand anywhere in a mark that a model still reads as one. */
const unseen = '\\p{Cf}*'
const spelled = quoteKinds.map(kind => [...kind].join(unseen)).join('|')
/** Whatever reads as the beginning of a mark: with blanks, in another case, or with signs that look like its own. */
const opening = new RegExp(
  `[<\\uff1c\\ufe64\\u2039\\u3008\\u27e8](?=[\\s\\p{Cf}]*[/\\uff0f\\u2044\\u2215]?[\\s\\p{Cf}]*(?:${spelled})\\b)`,
  'giu',
)
const quoted = new RegExp(`<(${kinds})((?: [a-z]+="[^"]*")*)>\\n([\\s\\S]*?)\\n</\\1>`, 'g')

/** Nobody ends a quotation but whoever began it: what reads as a mark is none any more. */
export function withoutMarks(text: string): string {
  return text.replace(opening, '‹')
}

/** Puts the text of a server between marks that say where it is from. */
export function quote(kind: QuoteKind, about: Readonly<Record<string, string | undefined>>, text: string): string {
  const said = Object.entries(about).flatMap(([name, value]) => {
    return value === undefined ? [] : [` ${name}="${attribute(value)}"`]
  })
  return `<${kind}${said.join('')}>\n${withoutMarks(text)}\n</${kind}>`
}

/** On one line, and without what would end it, or the mark. */
function attribute(value: string): string {
  return clip(value, 160)
    .replaceAll('"', '”')
    .replace(/[<\uff1c]/g, '‹')
    .replace(/[>\uff1e]/g, '›')
}

/** All quotations in a text, and what remains without them. */
export function readQuotes(text: string): { readonly quotes: readonly Quote[]; readonly own: string } {
  const quotes: Quote[] = []
  const own = text.replace(quoted, (_, kind: QuoteKind, about: string, inner: string) => {
    quotes.push({
      kind,
      about: new Map(Array.from(about.matchAll(/ ([a-z]+)="([^"]*)"/g), m => [m[1] ?? '', m[2] ?? ''])),
      text: inner,
    })
    return ''
  })
  return { quotes, own: own.trim() }
}

/** The text as it reads without the marks. */
export function unquoted(text: string): string {
  return text.replace(quoted, (_, _kind: string, _about: string, inner: string) => inner)
}
