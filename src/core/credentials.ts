/**
 * What carriers with headers ask for when a server wants to know who calls. Implemented by the room that knows OAuth; a
 * carrier knows only that a refused request did not run, and may therefore be sent again with better credentials.
 */

export type CredentialHeaders = Readonly<Record<string, string>>

/** An answer that asks for credentials, or for better ones. */
export interface CredentialRefusal {
  /** 401, or 403 with a challenge. */
  readonly status: number
  readonly header: (name: string) => string | undefined
  /** What the refused request was sent with. */
  readonly sent: CredentialHeaders | undefined
  /** How often this request was refused by now, this time included. */
  readonly times: number
  /** Aborted when the request is no longer wanted. */
  readonly signal: AbortSignal
}

export interface Credentials {
  /** Headers with which a request goes out. A promise only where something must be signed or fetched first. */
  headers(method: string, url: URL): CredentialHeaders | undefined | Promise<CredentialHeaders | undefined>
  /** Resolves when sending the request again makes sense; rejects with the reason why it does not. */
  refused(refusal: CredentialRefusal): Promise<void>
  /** Looks at the headers of every other answer; only where those matter. */
  answered?(header: (name: string) => string | undefined): void
}

/** The refusal can be met: credentials are missing or too old (401), or allow too little (403 with a challenge). */
export function wantsCredentials(status: number, challenge: string | null | undefined): boolean {
  return status === 401 || (status === 403 && typeof challenge === 'string' && /insufficient_scope/i.test(challenge))
}
