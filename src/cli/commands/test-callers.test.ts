import { expect, test } from 'vitest'
import type { Result } from '../../conformance/index.ts'
import { CliError } from '../io.ts'
import { judgeCaller, refuseUnheard } from './test.ts'

const quiet = { signal: new AbortController().signal, onResult: () => {} }

test('without --client and --host it is a server that is judged', () => {
  expect(judgeCaller({}, quiet)).toBeUndefined()
})

test('one program is judged at a time', () => {
  expect(() => judgeCaller({ client: 'a', host: 'b' }, quiet)).toThrow(CliError)
})

test('a client that does nothing has failed where its revision was asked for by name', async () => {
  const told: Result[] = []
  const command = `"${process.execPath}" -e 0`
  const report = await judgeCaller(
    { client: command, revision: ['2025-11-25'], carrier: ['http'], only: /^client\/run/ },
    { ...quiet, onResult: result => void told.push(result) },
  )
  expect(report?.results).toMatchObject([{ test_id: 'cell/2025-11-25/http', status: 'failed' }])
  expect(told).toEqual(report?.results)
})

test('a program that is no host is skipped where nobody asked for the revision', async () => {
  const report = await judgeCaller({ host: `"${process.execPath}" -e 0`, carrier: ['http'], only: /L12-1/ }, quiet)
  expect(report).toMatchObject({ role: 'host', summary: { failed: 0, error: 0, passed: 0 } })
  // Whoever runs the command is told why nothing was judged, and what such a program has to do.
  expect(() => report && refuseUnheard(report)).toThrow(expect.objectContaining({ exit: 4 }))
})
