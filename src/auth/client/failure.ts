/** Why credentials could not be had. Says which rule refused and what would help; never holds a token. */

export type AuthorizationRule =
  | 'address'
  | 'challenge'
  | 'resource-metadata'
  | 'resource-mismatch'
  | 'server-metadata'
  | 'issuer-mismatch'
  | 'pkce'
  | 'registration'
  | 'browser'
  | 'authorization-response'
  | 'token-request'
  | 'token-type'
  | 'refused-again'
  | 'scope'
  | 'options'

export class AuthorizationError extends Error {
  override readonly name = 'AuthorizationError'
  /** The rule that stopped it. */
  readonly rule: AuthorizationRule
  /** The error code of the authorization server (`access_denied`, `invalid_grant`, …), where it gave one. */
  readonly code: string | undefined

  constructor(rule: AuthorizationRule, message: string, code?: string) {
    super(message)
    this.rule = rule
    this.code = code
  }
}
