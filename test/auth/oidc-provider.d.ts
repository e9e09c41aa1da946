/** As much of the package as the tests use; it brings no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Grant {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }

  interface Interaction {
    readonly prompt: { readonly name: string }
    readonly params: Readonly<Record<string, string>>
    readonly session?: { readonly accountId: string }
  }

  export class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>)
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: unknown): Promise<void>
    on(event: string, listener: (...args: readonly unknown[]) => void): this
    readonly Grant: new (facts: {
      readonly accountId: string
      readonly clientId: string
    }) => Grant
    readonly AccessToken: {
      find(
        token: string,
      ): Promise<
        { readonly aud: string; readonly scope?: string; readonly isExpired: boolean; destroy(): Promise<void> } | undefined
      >
    }
  }
}
