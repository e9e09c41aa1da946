/** Asking the issuer what a token is worth (RFC 7662). */
import { toBase64 } from '../../core/base64url.ts'
import type { Clock } from '../../core/clock.ts'
import { principalOf } from './claims.ts'
import { fetchJson } from './fetch-json.ts'
import { issuerAddress } from './issuer.ts'
import type { IntrospectionOptions } from './options.ts'
import { QuestionSlots } from './question-slots.ts'
import type { Verifier } from './verifier.ts'

export interface Introspection extends IntrospectionOptions {
  readonly issuer: string
  readonly audiences: () => readonly string[]
  readonly clock: Clock
}

export function introspectionVerifier(options: Introspection): Verifier {
  const { issuer, audiences, clock } = options
  const authorization = `Basic ${credentials(options)}`
  let endpoint: Promise<string> | undefined = options.endpoint === undefined ? undefined : Promise.resolve(options.endpoint)
  const slots = new QuestionSlots()

  const address = (): Promise<string> => {
    endpoint ??= issuerAddress(issuer, 'introspection_endpoint').catch(error => {
      endpoint = undefined
      throw error
    })
    return endpoint
  }
  const ask = async (token: string): Promise<Record<string, unknown>> => {
    const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString()
    const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
    return fetchJson(await address(), { method: 'POST', headers, body })
  }
  return async (token, asking) => {
    const answer = await slots.ask(asking, () => ask(token))
    if (answer['active'] !== true) return 'it is not active'
    const { token_type: type } = answer
    // Refresh tokens can be active too, and those that need a proof are no bearer's.
    if (type !== undefined && !(typeof type === 'string' && type.toLowerCase() === 'bearer')) return 'it is no bearer token'
    return principalOf({ ...answer, iss: answer['iss'] ?? issuer }, { issuer, audiences: audiences(), now: clock.now() })
  }
}

/** RFC 6749 §2.3.1: each part is form-encoded before the two are joined. */
function credentials({ clientId, clientSecret }: IntrospectionOptions): string {
  return toBase64(new TextEncoder().encode(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`))
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1)
}
