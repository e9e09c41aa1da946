/** What an author may say when making a server. Every option has a default. */
import type { Clock } from '../core/clock.ts'
import type { Duration } from '../core/duration.ts'
import type { Limits } from '../engine/limits.ts'
import type { Icon, RevisionId } from '../revisions/index.ts'
import type { RateOptions } from './rates.ts'

export interface ServerOptions {
  readonly name: string
  readonly version: string
  readonly title?: string
  readonly description?: string
  readonly websiteUrl?: string
  readonly icons?: readonly Icon[]
  /** Told to every client: how to use this server. */
  readonly instructions?: string
  /** The wires spoken. Default: the five official revisions. */
  readonly revisions?: readonly RevisionId[]
  /** At least 32 characters, shared by replicas: any of them can continue what another one asked. Newest first to rotate. */
  readonly secret?: string | readonly string[] | undefined
  /** Entries per page of a list. Default 500. */
  readonly pageSize?: number
  /** How long clients may keep lists, and for whom. Default: not at all. */
  readonly cache?: { readonly ttl?: Duration; readonly scope?: 'public' | 'private' }
  /** Over HTTP, serve session wires without sessions: no pushed questions, no unasked messages. Default true: with sessions. */
  readonly sessions?: boolean
  readonly limits?: Partial<Limits> & { readonly rates?: RateOptions | false }
  /** How long a client may take to answer what a call asked. Default 10 minutes. */
  readonly askTimeout?: Duration
  /** Told what went wrong or was refused, with its detail. Default: nothing. */
  readonly onTrace?: (event: string, detail: unknown) => void
  readonly clock?: Clock
}
