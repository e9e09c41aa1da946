import { expect, it } from 'vitest'
import type { AuthorizationContext } from './context.ts'
import { bearer, oauth } from './index.ts'

const context: AuthorizationContext = {
  server: new URL('http://mcp.example/mcp'),
  reach: () => {
    throw new Error('nobody is asked')
  },
  revisions: [],
  clock: { now: () => 0, setTimer: () => () => {} } as unknown as AuthorizationContext['clock'],
  clientName: 'test',
  trace: () => {},
}

it('a sign-in is refused by plain http when the server asks for one, and not before', async () => {
  const credentials = oauth().authorizer(context)
  expect(credentials.headers('POST', context.server)).toBeUndefined()
  const refusal = { status: 401, header: () => undefined, sent: undefined, times: 1, signal: new AbortController().signal }
  await expect(credentials.refused(refusal)).rejects.toMatchObject({ rule: 'address', message: /plain http/ })
})

it('a token that is there is refused at once', () => {
  expect(() => bearer('t').authorizer(context)).toThrow('plain http')
})
