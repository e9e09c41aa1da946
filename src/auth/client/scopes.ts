/** Which scopes are asked for (2026-07-28 basic/authorization, "Scope Selection Strategy"). */

export type Scopes = readonly string[]

export function scopesIn(text: string | undefined): Scopes {
  return text === undefined ? [] : text.split(/\s+/).filter(scope => scope !== '')
}

export function union(...lists: readonly Scopes[]): Scopes {
  return [...new Set(lists.flat())]
}

export interface ScopeFacts {
  /** Of the challenge: what the request at hand needs. */
  readonly challenged: Scopes
  /** Of the resource metadata: what the server suggests to begin with. */
  readonly suggested: Scopes
  /** By the option of this client. */
  readonly wanted: Scopes
  /** What was asked for before at this authorization server: it is not given up for something new. */
  readonly before: Scopes
  /** Whether a refresh token is wanted and the authorization server lists the scope for it. */
  readonly offline: boolean
}

/** Empty: no scope is named at all, and the authorization server decides. */
export function chooseScopes({ challenged, suggested, wanted, before, offline }: ScopeFacts): Scopes {
  const named = union(wanted, challenged)
  const first = named.length > 0 || before.length > 0 ? named : suggested
  const scopes = union(before, first)
  // Alone it would stand in for the scopes that the server gives when none is named.
  return offline && scopes.length > 0 ? union(scopes, ['offline_access']) : scopes
}
