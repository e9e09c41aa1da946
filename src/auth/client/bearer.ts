/** A token that somebody else takes care of. */
import type { CredentialRefusal, Credentials } from '../../core/credentials.ts'
import { checkServer } from './addresses.ts'
import type { Authorization } from './context.ts'
import { AuthorizationError } from './failure.ts'

/**
 * Sends a token that is already there. A function is asked again when the server refuses what it gave before.
 * @example
 * await connect(url, { auth: bearer(() => readToken()) })
 */
export function bearer(token: string | (() => string | Promise<string>)): Authorization {
  const ask = typeof token === 'string' ? () => token : token
  return {
    authorizer: ({ server }) => {
      checkServer(server)
      return new BearerAuthorizer(ask)
    },
  }
}

class BearerAuthorizer implements Credentials {
  readonly #ask: () => string | Promise<string>
  #headers: { readonly authorization: string } | undefined

  constructor(ask: () => string | Promise<string>) {
    this.#ask = ask
  }

  headers(): { readonly authorization: string } | Promise<{ readonly authorization: string }> {
    return this.#headers ?? this.#fetch()
  }

  async refused({ status, sent, times }: CredentialRefusal): Promise<void> {
    if (status === 403) {
      throw new AuthorizationError('scope', 'The server refuses the token for its scope (HTTP 403); give one with more scopes')
    }
    const refused = sent?.['authorization']
    if (times <= 2) {
      if (this.#headers?.authorization !== refused) return
      const { authorization } = await this.#fetch()
      if (authorization !== refused) return
    }
    throw new AuthorizationError('refused-again', 'The server refuses the token (HTTP 401); give one that is valid for it')
  }

  async #fetch(): Promise<{ readonly authorization: string }> {
    const token = await this.#ask()
    if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(token)) {
      throw new AuthorizationError('options', 'The token has characters that no bearer token may have (RFC 6750 section 2.1)')
    }
    this.#headers = { authorization: `Bearer ${token}` }
    return this.#headers
  }
}
