/** What whoever judges a guarded server gives to the kit, so that it can come with tokens of every kind. */

/** How a token differs from one that the server should take. */
export interface TokenFlaw {
  /** Default: the resource. `null`: none at all. */
  readonly audience?: string | null
  readonly issuer?: string
  readonly subject?: string
  /** Default: all that the server wants. */
  readonly scope?: string
  /** From now. Default 300; below 0 it has expired. */
  readonly expiresInSeconds?: number
  readonly notBeforeSeconds?: number
  /** `none`: unsigned; `HS256`: signed with the public key as a secret; `other`: by a key that the issuer does not have. */
  readonly signature?: 'none' | 'HS256' | 'other'
}

export interface AuthTrial {
  /** Makes a token that the server should take, but for its flaw. */
  token(flaw?: TokenFlaw): Promise<string>
  /** Whether tokens without a scope must be refused. Default false. */
  readonly scoped?: boolean
}
