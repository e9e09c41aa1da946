/** E12-6: what catches a mutation passes without it. */
import { describe, expect, it } from 'vitest'
import { mutations } from './index.ts'
import { tried } from './run.ts'

/** Cells in which mutations are tried, with all scenarios that are named there. */
const cells = [...Map.groupBy(mutations, ({ revision, web }) => `${revision} over ${web === undefined ? 'memory' : 'http'}`)]

describe('E12-6: without a mutation', () => {
  it.each(cells)('the scenarios of %s pass', { timeout: 300_000 }, async (_, group) => {
    const [{ revision, web }] = group as [(typeof mutations)[number]]
    const ids = [...new Set(group.flatMap(({ caughtBy }) => caughtBy))]
    const results = await tried({ revision, overHttp: web !== undefined }, ids)
    expect(results.filter(({ status }) => status !== 'passed').map(one => [one.test_id, one.message])).toEqual([])
    expect(results.map(({ test_id }) => test_id).sort()).toEqual(ids.sort())
  })
})
