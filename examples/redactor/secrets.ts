/**
 * Finds secrets in text and takes them out. Every pattern is bounded, so that a long answer costs time in proportion to its length.
 * What was found is told by its kind and number, never by its content.
 */
import { cardsIn } from './cards.ts'

export const kinds = ['private-key', 'api-key', 'token', 'password', 'card', 'email'] as const
export type Kind = (typeof kinds)[number]

export interface Redacted {
  readonly text: string
  readonly redacted: readonly { readonly kind: Kind; readonly count: number }[]
}

export interface RedactOptions {
  /** Default: all. */
  readonly kinds?: readonly Kind[]
  /** E-mail addresses, or domains with their @, that may be seen. */
  readonly allow?: readonly string[]
}

interface Rule {
  readonly kind: Kind
  /** What is named `secret` is taken out, else all that matched. */
  readonly pattern: RegExp
}

const rules: readonly Rule[] = [
  // One without an end reaches to the end of the text: half a key is still too much of it.
  {
    kind: 'private-key',
    pattern:
      /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  },
  { kind: 'api-key', pattern: /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g },
  { kind: 'api-key', pattern: /\bAIza[\w-]{35}/g },
  { kind: 'api-key', pattern: /\bsk-[\w-]{20,200}/g },
  { kind: 'api-key', pattern: /\b(?:[prs]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,200}/g },
  { kind: 'token', pattern: /\b(?:gh[oprsu]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255})/g },
  { kind: 'token', pattern: /\b(?:glpat-[\w-]{20,100}|npm_[A-Za-z0-9]{36}|xox[abeoprs]-[A-Za-z0-9-]{10,250})/g },
  { kind: 'token', pattern: /\beyJ[\w-]{8,5000}\.eyJ[\w-]{8,5000}\.[\w-]{8,5000}/g },
  { kind: 'token', pattern: /\b(?:Bearer|Basic)[ \t]{1,5}(?<secret>[A-Za-z0-9._~+/=-]{16,5000})/gi },
  { kind: 'password', pattern: /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{0,100}:(?<secret>[^\s/@[]{1,200})@/gi },
  {
    kind: 'password',
    pattern:
      /\b(?:password|passwd|pwd|passphrase|secret|api[_-]?key|access[_-]?token)["']?[ \t]{0,5}[:=][ \t]{0,5}["']?(?<secret>[^\s"',;[]{6,500})/gi,
  },
  { kind: 'email', pattern: /(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}/g },
]

/** @example redact('Write to ada@example.com').text // 'Write to [redacted-email]' */
export function redact(text: string, { kinds: wanted = kinds, allow = [] }: RedactOptions = {}): Redacted {
  const counts = new Map<Kind, number>()
  const replace = (kind: Kind): string => {
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
    return `[redacted-${kind}]`
  }
  let left = text
  for (const { kind, pattern } of rules) {
    if (!wanted.includes(kind)) continue
    left = left.replace(pattern, (...match) => {
      const [whole] = match as [string]
      if (kind === 'email' && isAllowed(whole, allow)) return whole
      const secret = secretIn(match.at(-1))
      return secret === undefined ? replace(kind) : whole.replace(secret, () => replace(kind))
    })
  }
  if (wanted.includes('card')) left = withoutCards(left, () => replace('card'))
  return { text: left, redacted: [...counts].map(([kind, count]) => ({ kind, count })) }
}

function withoutCards(text: string, replace: () => string): string {
  const pieces: string[] = []
  let at = 0
  for (const { from, to } of cardsIn(text)) {
    pieces.push(text.slice(at, from), replace())
    at = to
  }
  return pieces.join('') + text.slice(at)
}

function secretIn(groups: unknown): string | undefined {
  if (typeof groups !== 'object' || groups === null || !('secret' in groups)) return undefined
  return typeof groups.secret === 'string' ? groups.secret : undefined
}

function isAllowed(address: string, allow: readonly string[]): boolean {
  const spelled = address.toLowerCase()
  return allow.some(each => (each.startsWith('@') ? spelled.endsWith(each.toLowerCase()) : spelled === each.toLowerCase()))
}
