/** Signing in with the clients of the official SDK, as its guide shows a program how to: the page answers at once, so that nobody has to look at it. */
import { ClientCredentialsProvider as CredentialsV2, UnauthorizedError as UnauthorizedV2 } from '@modelcontextprotocol/client'
import { type OAuthClientProvider, UnauthorizedError as UnauthorizedV1 } from '@modelcontextprotocol/sdk/client/auth.js'
import { ClientCredentialsProvider as CredentialsV1 } from '@modelcontextprotocol/sdk/client/auth-extensions.js'
import type { SignInWay } from '../../src/conformance/index.ts'

type Kept<T extends (...args: never) => unknown> = Parameters<T>[0]

/** Keeps everything in memory, and goes to the page itself. */
export class Visitor implements OAuthClientProvider {
  readonly redirectUrl = 'http://127.0.0.1:7421/callback'
  readonly clientMetadata = {
    client_name: 'official-sdk',
    redirect_uris: [this.redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  #state = ''
  #back: URLSearchParams | undefined
  #information: ReturnType<OAuthClientProvider['clientInformation']>
  #tokens: ReturnType<OAuthClientProvider['tokens']>
  #verifier = ''
  #found: unknown

  state(): string {
    this.#state = crypto.randomUUID()
    return this.#state
  }

  clientInformation() {
    return this.#information
  }

  saveClientInformation(information: Kept<NonNullable<OAuthClientProvider['saveClientInformation']>>): void {
    this.#information = information
  }

  tokens() {
    return this.#tokens
  }

  saveTokens(tokens: Kept<OAuthClientProvider['saveTokens']>): void {
    this.#tokens = tokens
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }

  /** Asked for by 2.x: a code is redeemed where it was asked for. */
  saveDiscoveryState(found: unknown): void {
    this.#found = found
  }

  discoveryState(): never {
    return this.#found as never
  }

  codeVerifier(): string {
    return this.#verifier
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    const { headers } = await fetch(url, { redirect: 'manual' })
    this.#back = new URL(headers.get('location') ?? '', url).searchParams
  }

  /** What the page sent back, once; the state is for the program to look at. */
  back(): URLSearchParams {
    const back = this.#back
    this.#back = undefined
    if (back === undefined) throw new Error('Nobody came back from the page')
    if (back.get('state') !== this.#state) throw new Error('Somebody else came back from the page')
    return back
  }
}

export function providerFor(way: SignInWay, major: 1 | 2): OAuthClientProvider {
  if (way.way === 'code') return new Visitor()
  const options = { clientId: way.clientId, clientSecret: way.clientSecret }
  return major === 1 ? new CredentialsV1(options) : (new CredentialsV2(options) as OAuthClientProvider)
}

/** Does it, and where it is told to sign in, finishes that and does it once more; twice, since a scope may be missing after a token. */
export async function signingIn<T>(
  provider: OAuthClientProvider | undefined,
  finish: (back: URLSearchParams) => Promise<void>,
  work: () => Promise<T>,
): Promise<T> {
  for (let left = 2; ; left--) {
    try {
      return await work()
    } catch (error) {
      const asked = error instanceof UnauthorizedV1 || error instanceof UnauthorizedV2
      if (!asked || left === 0 || !(provider instanceof Visitor)) throw error
      await finish(provider.back())
    }
  }
}
