/** What a host's policy decides about a request. */
import type { Why } from '../../core/suggestion.ts'

/** The decision about one request: allowed, refused, asked about, delayed, or joined with others. */
export type Verdict =
  | {
      /** The effect. */
      readonly do: 'allow'
      /** The rule that decides. */
      readonly rule: string
    }
  | {
      /** The effect. */
      readonly do: 'deny'
      /** Why it is refused or waits. */
      readonly why: Why
      /** Milliseconds after which the request may be repeated. */
      readonly retryAfterMs?: number
    }
  | {
      /** The effect. */
      readonly do: 'ask'
      /** The question to the user. */
      readonly question: string
      /** Identifies what an approval applies to. */
      readonly digest: string
      /** The rule that decides. */
      readonly rule: string
    }
  | {
      /** The effect. */
      readonly do: 'hold'
      /** When it is decided again, in milliseconds since the epoch. */
      readonly until: number
      /** Why it is refused or waits. */
      readonly why: Why
    }
  | {
      /** The effect. */
      readonly do: 'coalesce'
      /** Events with the same key become one turn. */
      readonly key: string
      /** How long further events are collected, in milliseconds. */
      readonly withinMs: number
      /** The rule that decides. */
      readonly rule: string
    }
