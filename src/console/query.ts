/** Query parameters and bodies of requests: each route says what it takes, and anything else is refused by name. */
import { isRecord } from '../jsonrpc/message.ts'
import type { List } from './contract/problem.ts'
import { ConsoleFailure } from './failure.ts'
import type { PageWish } from './sources/source.ts'

/** What a member may be. */
export type MemberKind = 'text' | 'long' | 'number' | 'boolean' | 'record' | 'list' | readonly string[]

/** Members by name; in a body those with `?` may be left out. A query may leave out each. */
export type Members = Readonly<Record<string, MemberKind>>

/** The parameters that every list takes. */
export const paged = { after: 'text', limit: 'number' } as const

const longestText = 512
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
    if (text.length > (name === 'text' ? longestFilter : longestText)) throw wrong(name, `${name} is too long.`, 'Shorten it.')
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
    if (!fits(kind, value)) throw wrong(name, `${name} is missing or has the wrong type.`, `Give a ${String(kind)}.`)
  }
  return body
}

/** The page of a list that a query asks for. */
export function pageOf({ after, limit = 100 }: { readonly after?: unknown; readonly limit?: unknown }): PageWish {
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > mostItems)
    throw wrong('limit', 'limit is out of range.', `Give a whole number from 1 to ${mostItems}.`)
  return { after: after === undefined ? undefined : String(after), limit }
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

function fits(kind: MemberKind, value: unknown): boolean {
  if (kind === 'text') return typeof value === 'string' && value.length <= longestText
  if (kind === 'long') return typeof value === 'string' && value.length <= longestMessage
  if (kind === 'record') return isRecord(value)
  return kind === 'list' ? Array.isArray(value) : typeof value === kind
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
