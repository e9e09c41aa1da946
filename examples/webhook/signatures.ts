/**
 * Whether a webhook is what it says, by the manners of three senders. Everything secret is compared in constant time, over the bytes
 * that came, before anything of them is read.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

export const sources = ['github', 'gitlab', 'stripe'] as const
export type Source = (typeof sources)[number]

export interface Received {
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** Milliseconds since the epoch. */
  readonly now: number
}

export type Checked =
  | {
      readonly ok: true
      /** Undefined where it stands in the body. */
      readonly id: string | undefined
      readonly event: string | undefined
      /** What was signed, where the id was not: whoever sends it again under another id is found by it. */
      readonly digest: string | undefined
    }
  | { readonly ok: false; readonly status: 400 | 401; readonly reason: string }

/** How far the clock of a sender may be off, and how long somebody may hold back what it sent. */
const toleranceMs = 300_000

export const checks: Readonly<Record<Source, (secret: string, received: Received) => Checked>> = {
  // The header is HMAC-SHA256 of the body. Neither the delivery's id nor its time is part of it.
  github: (secret, { headers, body }) => {
    const signature = one(headers['x-hub-signature-256'])?.replace(/^sha256=/, '')
    if (!isHmac(secret, [body], signature)) return refused('The signature is missing or wrong')
    const id = one(headers['x-github-delivery'])
    if (!isName(id)) return refused('X-GitHub-Delivery is missing', 400)
    return { ok: true, id, event: one(headers['x-github-event']), digest: createHash('sha256').update(body).digest('hex') }
  },
  // The header is the secret itself.
  gitlab: (secret, { headers }) => {
    if (!isSame(secret, one(headers['x-gitlab-token']))) return refused('X-Gitlab-Token is missing or wrong')
    const id = one(headers['idempotency-key']) ?? one(headers['x-gitlab-event-uuid'])
    if (!isName(id)) return refused('Idempotency-Key and X-Gitlab-Event-UUID are missing', 400)
    return { ok: true, id, event: one(headers['x-gitlab-event']), digest: undefined }
  },
  // HMAC-SHA256 of a time, a dot and the body; several while secrets are rotated.
  stripe: (secret, { headers, body, now }) => {
    const parts = (one(headers['stripe-signature']) ?? '')
      .slice(0, 2000)
      .split(',')
      .map(part => part.split('='))
    const time = parts.find(([name]) => name === 't')?.[1] ?? ''
    const signed = parts.filter(([name]) => name === 'v1').some(([, value]) => isHmac(secret, [`${time}.`, body], value))
    if (!signed) return refused('The signature is missing or wrong')
    if (Math.abs(now - Number(time) * 1000) > toleranceMs)
      return refused('The signature is too old, or its time is in the future')
    return { ok: true, id: undefined, event: undefined, digest: undefined }
  },
}

function isHmac(secret: string, parts: readonly (string | Buffer)[], given: string | undefined): boolean {
  const hmac = createHmac('sha256', secret)
  for (const part of parts) hmac.update(part)
  const [right, said] = [hmac.digest(), Buffer.from(given ?? '', 'hex')]
  return said.length === right.length && timingSafeEqual(said, right)
}

/** Of their digests, which are of one length whatever was given. */
function isSame(secret: string, given: string | undefined): boolean {
  const [right, said] = [secret, given ?? ''].map(text => createHash('sha256').update(text).digest())
  return right !== undefined && said !== undefined && timingSafeEqual(said, right) && given !== undefined
}

function refused(reason: string, status: 400 | 401 = 401): Checked {
  return { ok: false, status, reason }
}

const one = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? undefined : value)

export const isName = (value: unknown): value is string => typeof value === 'string' && /^[\w.:-]{1,200}$/.test(value)
