/** The web's own Response from an answer that is whole. */
import { OutboundError } from '../../core/outbound.ts'
import { shown } from './destination.ts'
import type { Answer } from './send.ts'

/** Statuses that have no body (https://fetch.spec.whatwg.org/#null-body-status). */
const bodiless = new Set([204, 205, 304])

/** Libraries read `url` and `redirected`, which a Response made by hand leaves empty. */
export function responseOf({ status, headers, body }: Answer, url: URL, redirected: boolean): Response {
  if (status < 200 || status > 599)
    throw new OutboundError('failed', `${shown(url)} answered with status ${status}, which HTTP does not have`)
  // Cookies are nobody's here: not kept, and not shown.
  headers.delete('set-cookie')
  const response = new Response(bodiless.has(status) ? null : body, { status, headers })
  Object.defineProperties(response, { url: { value: url.href }, redirected: { value: redirected } })
  return response
}
