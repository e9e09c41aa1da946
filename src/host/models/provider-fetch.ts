/**
 * Requests to a model provider. They carry its API key and everything that was said in a conversation, so they go to the address
 * that was configured and nowhere else: a redirect is an error. (The platform's own fetch takes Authorization off when it follows one
 * to another origin, but not `x-api-key`, and not the body.)
 */
import { problem } from '../../core/problem.ts'
import { redact } from '../../core/redact.ts'
import { clip } from '../../jsonrpc/limits.ts'

export const providerFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: 'manual' })
  const { status, headers } = response
  if (response.type !== 'opaqueredirect' && !(status >= 300 && status < 400)) return response
  await response.body?.cancel()
  const asked = URL.parse(input instanceof Request ? input.url : String(input))
  throw problem(
    'SERVER_ERROR',
    `The model provider at ${asked?.origin ?? 'this address'} redirects to ${clip(redact(headers.get('location') ?? 'elsewhere'))} (HTTP ${status}). The request was not sent there, because it carries your API key`,
    {
      suggestion: 'Set baseURL to the final address if you trust it',
      actor: 'operator',
    },
  )
}
