/**
 * What HTTP says beside frames: the heads of requests and answers, as the wire saw them. Exchanges that carry no frame (a stream that is
 * opened, the metadata of a sign-in, a request for a token) become rows of their own, without their bodies.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { HttpHead } from '../contract/frames.ts'
import type { FrameRedaction } from './redaction.ts'
import type { StoredFrame } from './ring.ts'

/** What a chain of asynchronous work belongs to. */
interface Passing {
  /** The call of the playground. */
  readonly call?: string | undefined
  /** The frame that is being sent. */
  readonly sent?: SentFrame
}

/** A frame on its way, and what is learned of its exchange. */
export interface SentFrame {
  readonly text: string
  readonly stored: StoredFrame
  /** The head of the answer. */
  answer?: HttpHead
}

/** What the work of now belongs to. */
export const passing = new AsyncLocalStorage<Passing>()

/** An exchange without a frame. */
export interface BareExchange {
  readonly head: HttpHead
  /** Milliseconds since the request; absent for the request. */
  readonly ms?: number
  /** Why there was no answer. */
  readonly failed?: string
}

interface FetchParts {
  readonly redaction: FrameRedaction
  /** Credentials that went with a frame. */
  credentials(authorization: string): void
  /** An exchange, or its answer, that carries no frame. Gives its number, by which the answer names its request. */
  bare(exchange: BareExchange, of?: number): number | undefined
}

/** `fetch` that tells of the heads that pass. */
export function observedFetch({ redaction, bare, credentials }: FetchParts, inner: typeof fetch = fetch): typeof fetch {
  return async (input, init) => {
    const { method = 'GET', body } = init ?? {}
    const url = new URL(input instanceof Request ? input.url : input)
    const given = new Headers(init?.headers)
    const headers = redaction.headers(given)
    const head: HttpHead = { method, path: redaction.text(url.pathname + url.search), headers }
    const sent = passing.getStore()?.sent
    const carried = sent !== undefined && sent.text === body ? sent : undefined
    const began = performance.now()
    const n = carried === undefined ? bare({ head }) : carried.stored.row.n
    if (carried !== undefined) {
      carried.stored.head = head
      const authorization = given.get('authorization')
      if (authorization !== null) credentials(authorization)
    }
    try {
      const response = await inner(input, init)
      const answer: HttpHead = { status: response.status, headers: redaction.headers(response.headers) }
      if (carried !== undefined) carried.answer = answer
      // What was refused may be sent again with better credentials, and would be forgotten.
      if (carried === undefined || response.status >= 400) bare({ head: answer, ms: performance.now() - began }, n)
      return response
    } catch (error) {
      if (carried === undefined) bare({ head: {}, failed: error instanceof Error ? error.message : String(error) }, n)
      throw error
    }
  }
}
