/** Query parameters and bodies of requests: each route says what it takes, and anything else is refused by name. */
import { isRecord } from '../jsonrpc/message.ts'
import type { List } from './contract/problem.ts'
import { ConsoleFailure } from './failure.ts'
import type { PageWish } from './sources/source.ts'

/**
 * What a member may be. `long`: a text of any length that a request may have; `texts`: a list of at most 64 texts; `message`: at most 200,000
 * characters; `list`: anything in order.
 */
export type MemberKind = 'text' | 'long' | 'message' | 'texts' | 'number' | 'boolean' | 'record' | 'list' | readonly string[]

/** Members by name; in a body those with `?` may be left out. A query may leave out each. */
export type Members = Readonly<Record<string, MemberKind>>

/** The parameters that every list takes. */
export const paged = { after: 'text', limit: 'number' } as const

const longestText = 512
const longestAddress = 8_192
const mostTexts = 64
const longestFilter = 200
const longestMessage = 200_000
const mostItems = 1_000

/** The parameters of a query, checked. */
export function readQuery(search: URLSearchParams, members: Members): Readonly<Record<string, string | number>> {
  const found: Record<string, string | number> = {}
  for (const [name, text] of search) {
    const kind = Object.hasOwn(members, name) ? members[name] : undefined
    if (kind === undefined) throw wrong(name, `The parameter ${shown(name)} is not known here.`, known(members))
    if (Object.hasOwn(found, name)) throw wrong(name, `The parameter ${name} is given twice.`, 'Give it once.')
    const longest = name === 'text' ? longestFilter : kind === 'long' ? longestAddress : longestText
    if (text.length > longest) throw wrong(name, `${name} is too long.`, 'Shorten it.')
    found[name] = kind === 'number' ? numberOf(name, text) : text
    if (Array.isArray(kind) && !kind.includes(text))
      throw wrong(name, `${name} is not one of its values.`, `Give ${kind.join(', ')}.`)
  }
  return found
}

/** A body, checked. */
export function readBody(text: string, members: Members): Readonly<Record<string, unknown>> {
  let body: unknown
  try {
    body = text === '' ? {} : JSON.parse(text)
  } catch (cause) {
    throw new ConsoleFailure('INVALID_INPUT', 'The body is not valid JSON.', 'Send a JSON object.', undefined, { cause })
  }
  if (!isRecord(body)) throw new ConsoleFailure('INVALID_INPUT', 'The body is not a JSON object.', 'Send a JSON object.')
  const names = Object.keys(members).map(name => name.replace('?', ''))
  for (const name of Object.keys(body))
    if (!names.includes(name)) throw wrong(name, `${shown(name)} is not known here.`, known(members))
  for (const [said, kind] of Object.entries(members)) {
    const name = said.replace('?', '')
    const value = body[name]
    if (value === undefined && said.endsWith('?')) continue
    if (!fits(value, kind)) throw wrong(name, `${name} is missing or has the wrong type.`, `Give ${wanted(kind)}.`)
  }
  return body
}

/** The page of a list that a query asks for. */
export function pageOf({ after, limit = 100 }: { readonly after?: unknown; readonly limit?: unknown }): PageWish {
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > mostItems)
    throw wrong('limit', 'limit is out of range.', `Give a whole number from 1 to ${mostItems}.`)
  return { after: after === undefined ? undefined : String(after), limit }
}

/** The filters of a query, and the page that it asks for. */
export function pagedQuery<Filters>(query: Readonly<Record<string, string | number>>): {
  readonly filters: Filters
  readonly page: PageWish
} {
  const { after, limit, ...filters } = query
  return { filters: filters as Filters, page: pageOf({ after, ...(limit !== undefined && { limit }) }) }
}

/** A page of numbered items, newest first, of which `find` gives as many as it is asked for before a number. */
export function sliceNewest<T extends { readonly n: number }>(
  { after, limit }: PageWish,
  find: (before: number, limit: number) => readonly T[],
): List<T> {
  const found = find(after === undefined ? Number.POSITIVE_INFINITY : positionOf(after), limit + 1)
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return found.length > items.length && last !== undefined ? { items, next: String(last.n) } : { items }
}

/** A page of a list that is at hand; `after` is the index of its last item. */
export function slice<T>(all: readonly T[], { after, limit }: PageWish): List<T> {
  const from = after === undefined ? 0 : positionOf(after)
  const items = all.slice(from, from + limit)
  return from + items.length < all.length ? { items, next: String(from + items.length) } : { items }
}

/** A cursor that is a number. */
export function positionOf(after: string): number {
  if (/^\d{1,15}$/.test(after)) return Number(after)
  throw wrong('after', 'after is not a cursor of this list.', 'Give the member next of an earlier answer.')
}

function fits(value: unknown, kind: MemberKind): boolean {
  if (kind === 'record') return isRecord(value)
  if (kind === 'text') return isText(value)
  if (kind === 'long') return typeof value === 'string'
  if (kind === 'message') return typeof value === 'string' && value.length <= longestMessage
  if (kind === 'list') return Array.isArray(value)
  if (kind === 'texts') return Array.isArray(value) && value.length <= mostTexts && value.every(isText)
  return typeof kind === 'string' ? typeof value === kind : kind.some(each => each === value)
}

function wanted(kind: MemberKind): string {
  if (typeof kind !== 'string') return kind.join(', ')
  if (kind === 'message') return `a text of at most ${longestMessage} characters`
  return kind === 'texts' ? 'a list of texts' : `a ${kind === 'long' ? 'text' : kind}`
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.length <= longestText
}

function numberOf(name: string, text: string): number {
  const value = Number(text)
  if (text !== '' && Number.isFinite(value) && value >= 0) return value
  throw wrong(name, `${name} is not a number.`, 'Give a number of at least 0.')
}

function known(members: Members): string {
  const names = Object.keys(members).map(name => name.replace('?', ''))
  return names.length === 0 ? 'Leave it out.' : `There are ${names.join(', ')}.`
}

function shown(name: string): string {
  return /^\w{1,40}$/.test(name) ? name : 'of this name'
}

function wrong(member: string, message: string, fix: string): ConsoleFailure {
  return new ConsoleFailure('INVALID_INPUT', message, fix, { member: member.slice(0, 100) })
}
