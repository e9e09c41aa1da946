/** A server that takes the tokens of an authorization server which others have written. */
import { type RunningProvider, startProvider } from './provider.ts'
import { startWorld, type World } from './world.ts'

export interface ProvidedWorld {
  readonly world: World
  readonly provider: RunningProvider
}

export async function startProvidedWorld(): Promise<ProvidedWorld> {
  let url = ''
  const provider = await startProvider(() => url)
  const world = await startWorld({
    challenge: 'scope="tools"',
    resource: all => ({ ...all, authorization_servers: [provider.issuer] }),
    async verify(value) {
      const token = await provider.provider.AccessToken.find(value)
      if (token === undefined || token.isExpired || token.aud !== url) return undefined
      return { value, scope: token.scope ?? '' }
    },
  })
  url = world.url
  return { world, provider }
}
