/**
 * What others wrote, in a prompt: put between marks that say whose it is, so that a model can tell it from what the user said. The
 * marks keep honest readers honest; what a model may do is decided by policy, never by them.
 */
import { clip } from '../../jsonrpc/limits.ts'

export type QuoteKind = 'context' | 'event' | 'resource'

export interface Quote {
  readonly kind: QuoteKind
  readonly about: ReadonlyMap<string, string>
  readonly text: string
}

const kinds = 'context|event|resource'
const closing = new RegExp(`<(?=/?(?:${kinds})\\b)`, 'gi')
const quoted = new RegExp(`<(${kinds})((?: [a-z]+="[^"]*")*)>\\n([\\s\\S]*?)\\n</\\1>`, 'g')

/** Marks inside the text are made harmless: nobody ends a quotation but whoever began it. */
export function quote(kind: QuoteKind, about: Readonly<Record<string, string | undefined>>, text: string): string {
  const said = Object.entries(about).flatMap(([name, value]) => {
    return value === undefined ? [] : [` ${name}="${clip(value, 160).replaceAll('"', '”').replaceAll('<', '‹')}"`]
  })
  return `<${kind}${said.join('')}>\n${text.replace(closing, '‹')}\n</${kind}>`
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
