/** Faults of clients that sign in: what they ask the authorization server for, believe of it, and do with a token. */
import { browser } from '../../../examples/everything/sign-in.ts'
import { type Authorization, type Browser, type ConnectOptions, clientCredentials, oauth } from '../../../src/client/index.ts'
import type { SignInWay } from '../../../src/conformance/index.ts'
import type { Outbound, OutboundRequest } from '../../../src/core/outbound.ts'

type Json = Record<string, unknown>

export interface SignInFault {
  /** Changes the address of the page on which a user signs in. */
  readonly page?: (url: URL) => void
  /** Changes the address at which the user comes back, before the client reads it. */
  readonly back?: (url: URL, page: URL) => void
  /** Changes what is asked for beside: undefined means that it is not asked at all, and not found. */
  readonly asks?: (url: URL, form: URLSearchParams | undefined, headers: Headers) => URL | undefined
  /** Changes what metadata say, before the client reads them. */
  readonly told?: (metadata: Json, url: URL) => Json
  /** In place of the fetch by which the server is spoken with. */
  readonly fetch?: typeof fetch
}

export interface SignInMutation {
  readonly says: string
  readonly caught: string
  readonly signIn: SignInFault
}

/** A client with this fault, for this way to sign in. */
export function faultySignIn({ page, back, asks, told, fetch: speak }: SignInFault, way: SignInWay): ConnectOptions {
  const looks: Browser = {
    redirectUri: browser.redirectUri,
    async authorize(url, options) {
      const shown = new URL(url)
      page?.(shown)
      const came = new URL(String(await browser.authorize(shown, options)))
      back?.(came, shown)
      return came
    },
  }
  const outbound: Outbound = async (address, request = {}) => {
    const url = new URL(address)
    const form = request.body instanceof URLSearchParams ? request.body : undefined
    const headers = new Headers(request.headers as HeadersInit | undefined)
    const at = asks === undefined ? url : asks(url, form, headers)
    if (at === undefined) return new Response('{}', { status: 404 })
    const response = await fetch(at, requestInit(request, headers, form))
    if (told === undefined || !response.ok || !url.pathname.includes('.well-known')) return response
    return Response.json(told((await response.json()) as Json, url))
  }
  const auth: Authorization =
    way.way === 'code'
      ? oauth({ browser: looks, outbound })
      : clientCredentials({ clientId: way.clientId, clientSecret: way.clientSecret, outbound })
  return { auth, ...(speak === undefined ? {} : { fetch: speak }) }
}

function requestInit(
  { method, body, signal }: OutboundRequest,
  headers: Headers,
  form: URLSearchParams | undefined,
): RequestInit {
  return {
    headers,
    ...(method === undefined ? {} : { method }),
    ...(body === undefined || body === null ? {} : { body: form ?? (body as string) }),
    ...(signal === undefined ? {} : { signal }),
  }
}

const isToken = (url: URL): boolean => url.pathname.endsWith('/token')

/** The request again, with other headers. */
function changed(init: RequestInit | undefined, change: (headers: Headers) => void): RequestInit {
  const headers = new Headers(init?.headers)
  change(headers)
  return { ...init, headers }
}

export const signInFaults: readonly SignInMutation[] = [
  {
    says: 'gets a token and does not use it',
    caught: 'client/auth/signs-in',
    signIn: {
      fetch: (url, init) =>
        fetch(
          url,
          changed(init, headers => headers.delete('authorization')),
        ),
    },
  },
  {
    says: 'asks for PKCE without a hash',
    caught: 'client/auth/pkce',
    signIn: { page: url => url.searchParams.set('code_challenge_method', 'plain') },
  },
  {
    says: 'does not say for which server it wants to sign in',
    caught: 'client/auth/resource',
    signIn: { page: url => url.searchParams.delete('resource') },
  },
  {
    says: 'redeems its code for another server',
    caught: 'client/auth/resource',
    signIn: {
      asks: (url, form) => {
        if (isToken(url)) form?.set('resource', 'https://elsewhere.example/mcp')
        return url
      },
    },
  },
  {
    says: 'redeems its code with another way back',
    caught: 'client/auth/redirect-uri',
    signIn: {
      asks: (url, form) => {
        if (isToken(url)) form?.set('redirect_uri', 'http://127.0.0.1:1/other')
        return url
      },
    },
  },
  {
    says: 'comes back by http over the network',
    caught: 'client/auth/redirect-uri',
    signIn: { page: url => url.searchParams.set('redirect_uri', 'http://callback.example/') },
  },
  {
    says: 'puts its token into the address',
    caught: 'client/auth/every-request',
    signIn: {
      fetch: (input, init) => {
        const url = new URL(String(input))
        const token = new Headers(init?.headers).get('authorization')?.slice('Bearer '.length)
        if (token !== undefined) url.searchParams.set('access_token', token)
        return fetch(url, init)
      },
    },
  },
  {
    says: 'reads the metadata elsewhere than the challenge says',
    caught: 'client/auth/named-metadata',
    signIn: {
      asks: url => (url.pathname.startsWith('/about/') ? new URL('/.well-known/oauth-protected-resource/mcp', url) : url),
    },
  },
  {
    says: 'leaves out a place where metadata may be',
    caught: 'client/auth/discovery-order',
    signIn: { asks: url => (url.pathname === '/.well-known/openid-configuration/tenant' ? undefined : url) },
  },
  {
    says: 'takes metadata of another resource',
    caught: 'client/auth/resource-mismatch',
    signIn: {
      told: (metadata, url) => ('resource' in metadata ? { ...metadata, resource: new URL('/mcp', url).href } : metadata),
    },
  },
  {
    says: 'takes metadata of another authorization server',
    caught: 'client/auth/issuer-mismatch',
    signIn: { told: (metadata, url) => ('issuer' in metadata ? { ...metadata, issuer: url.origin } : metadata) },
  },
  {
    says: 'trusts that everybody knows PKCE',
    caught: 'client/auth/no-pkce',
    signIn: {
      told: metadata => ('token_endpoint' in metadata ? { ...metadata, code_challenge_methods_supported: ['S256'] } : metadata),
    },
  },
  {
    says: 'does not look at who sent the user back',
    caught: 'client/auth/wrong-iss',
    signIn: { back: (url, page) => url.searchParams.set('iss', page.origin) },
  },
  {
    says: 'does not miss the issuer that was promised',
    caught: 'client/auth/missing-iss',
    signIn: { back: (url, page) => url.searchParams.set('iss', page.origin) },
  },
  {
    says: 'takes its token along to wherever it is redirected',
    caught: 'client/auth/other-origin',
    signIn: {
      fetch: async (url, init) => {
        const response = await fetch(url, { ...init, redirect: 'manual' })
        const location = response.headers.get('location')
        return location === null ? response : fetch(location, init)
      },
    },
  },
  {
    says: 'gives up when its token has expired',
    caught: 'client/auth/expired',
    signIn: {
      fetch: async (url, init) => {
        const response = await fetch(url, init)
        const refused = response.status === 401 && new Headers(init?.headers).has('authorization')
        return refused ? new Response('', { status: 500 }) : response
      },
    },
  },
  {
    says: 'asks again for the scope that was too little',
    caught: 'client/auth/step-up',
    signIn: { page: url => url.searchParams.set('scope', 'mcp:use') },
  },
  {
    says: 'does not prove who it is when it asks for itself',
    caught: 'client/auth/client-credentials',
    signIn: {
      asks: (url, _, headers) => {
        headers.delete('authorization')
        return url
      },
    },
  },
]
