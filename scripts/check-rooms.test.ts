import { describe, expect, it } from 'vitest'
import { findRoomProblems } from './check-rooms.ts'

/** The problems of a house that holds only these files. */
function judge(files: Record<string, string>): string[] {
  return findRoomProblems(new Map(Object.entries(files)))
}

describe('floors', () => {
  it('lets a room import from every lower floor', () => {
    expect(
      judge({ 'src/engine/plan.ts': `import { a } from '../jsonrpc/parse.ts'\nimport type { B } from '../core/clock.ts'` }),
    ).toEqual([])
  })

  it('refuses an import from a higher floor and says where it stands', () => {
    const [problem] = judge({ 'src/core/clock.ts': `\nimport { x } from '../engine/plan.ts'` })
    expect(problem).toMatch(
      /^src\/core\/clock\.ts:2: core may not import src\/engine\/plan\.ts: engine \(floor 2\) lies above core \(floor 1\); move/,
    )
  })

  it('refuses a neighbour on the same floor, also for types only', () => {
    expect(judge({ 'src/core/a.ts': `import type { R } from '../revisions/index.ts'` })[0]).toContain(
      'core and revisions share floor 1',
    )
  })

  it('sees an import that spans lines, a re-export and an import()', () => {
    const text = `import {\n  a,\n  b,\n} from '../server/index.ts'\nexport { c } from '../client/index.ts'\nconst d = await import('../host/index.ts')`
    expect(judge({ 'src/engine/x.ts': text }).map(problem => problem.split(': ')[0])).toEqual([
      'src/engine/x.ts:1',
      'src/engine/x.ts:5',
      'src/engine/x.ts:6',
    ])
  })

  it('does not take comments, strings or templates for imports', () => {
    const text = `// import x from '../server/index.ts'\n/* import y from '../cli/x.ts' */\nconst s = \`import z from '../cli/x.ts' \${1}\`\nconst r = /'/\nconst q = "import '../cli/x.ts'"`
    expect(judge({ 'src/core/x.ts': text })).toEqual([])
  })

  it('lets a test import anything', () => {
    expect(
      judge({ 'src/jsonrpc/x.test.ts': `import { a } from '../cli/a.ts'\nimport fs from 'node:fs'\nimport { z } from 'zod'` }),
    ).toEqual([])
  })
})

describe('revision ids', () => {
  const asks = `\nif (revision.id === '2025-06-18') return {}`

  it('are spelled only by revisions, messages, the kit and tests', () => {
    const [problem, ...others] = judge({
      'src/engine/x.ts': asks,
      'src/revisions/x.ts': asks,
      'src/features/mcp/x/messages.ts': asks,
      'src/conformance/x.ts': asks,
      'src/engine/x.test.ts': asks,
    })
    expect(problem).toMatch(/^src\/engine\/x\.ts:2: spells a revision id; make what you ask of it a property/)
    expect(others).toEqual([])
  })

  it('may be spelled where the list says so, and only as long as they are', () => {
    expect(judge({ 'src/testing/connect.ts': asks })).toEqual([])
    expect(judge({ 'src/testing/connect.ts': 'export {}' })[0]).toContain('spells no revision id any more')
  })

  it('are no dates of something else', () => {
    expect(
      judge({ 'src/engine/x.ts': `const draft = 'https://json-schema.org/draft/2020-12/schema'\nconst day = '2025-01-01'` }),
    ).toEqual([])
  })
})

describe('places', () => {
  it('refuses a file outside every room', () => {
    expect(judge({ 'src/index.ts': '', 'src/attic/x.ts': '' })).toEqual([
      expect.stringContaining('src/index.ts: lies in no room'),
      expect.stringContaining('src/attic/x.ts: lies in no room'),
    ])
  })

  it('refuses drawers and unknown families', () => {
    expect(judge({ 'src/core/utils.ts': '', 'src/features/odd/x/server.ts': '' })).toEqual([
      expect.stringContaining('"utils" is a drawer'),
      expect.stringContaining('"odd" is no family'),
    ])
  })

  it('refuses an import that leaves src, that names a test, or whose name is computed', () => {
    const text = `import a from '../../bench/a.ts'\nimport b from './b.test.ts'\nawait import(name)`
    expect(judge({ 'src/server/x.ts': text })).toEqual([
      expect.stringContaining('outside src/'),
      expect.stringContaining('b.test.ts is a test'),
      expect.stringContaining('computed name'),
    ])
  })
})

describe('packages', () => {
  it('keeps node: out of the portable rooms only', () => {
    expect(judge({ 'src/transports/stdio.ts': `import { spawn } from 'node:child_process'` })).toEqual([])
    expect(judge({ 'src/engine/x.ts': `import { createHash } from 'node:crypto'` })[0]).toContain('may not import node:crypto')
    expect(judge({ 'src/engine/x.ts': `import fs from 'fs/promises'` })[0]).toContain('may not import fs/promises')
  })

  it('lets one file name a package, and no second one', () => {
    const files = {
      'src/core/schema/ajv.ts': `import Ajv from 'ajv/dist/2020.js'`,
      'src/core/schema/b.ts': `import type { A } from 'ajv'`,
    }
    expect(judge(files)).toEqual([
      expect.stringMatching(/^src\/core\/schema\/b\.ts: package ajv is imported by src\/core\/schema\/ajv\.ts already/),
    ])
  })

  it('keeps optional peers out of portable rooms and unknown packages out of all', () => {
    expect(judge({ 'src/engine/x.ts': `import type { WebSocket } from 'ws'` })[0]).toContain('engine may not import ws')
    expect(judge({ 'src/server/x.ts': `import { z } from 'zod'` })[0]).toContain('package zod is not on the list')
    expect(judge({ 'src/server/x.ts': `import { c } from 'vivarium/client'` })[0]).toContain('our own package')
  })

  it('takes a file that names vitest for a test, which only tests may import', () => {
    const list = `import { it } from 'vitest'\nimport { x } from '../cli/x.ts'`
    expect(judge({ 'src/transports/contract.ts': list, 'src/transports/a.test.ts': `import './contract.ts'` })).toEqual([])
    expect(judge({ 'src/transports/contract.ts': list, 'src/transports/a.ts': `import './contract.ts'` })[0]).toContain(
      'serves tests',
    )
  })
})

describe('short files', () => {
  const files = (count: number, name: (at: number) => string) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [name(at), 'export const a = 1\n']))

  it('may be ten, beside entries, messages, sides and what is loaded when it is used', () => {
    expect(judge(files(10, at => `src/core/a${at}.ts`))).toEqual([])
    expect(judge(files(11, at => `src/core/a${at}.ts`))).toEqual([
      expect.stringMatching(/^src: 11 files have fewer than 25 lines/),
    ])
    const own = { ...files(10, at => `src/core/a${at}.ts`), ...files(5, at => `src/features/mcp/f${at}/messages.ts`) }
    expect(
      judge({ ...own, 'src/core/index.ts': "const b = import('./a0.ts')\n", 'src/core/b.ts': 'export const b = 1\n' }),
    ).toEqual([])
  })
})

describe('features', () => {
  it('are known by few files of server, client and engine: six, eight for those of the protocol', () => {
    const users = (count: number, family: string) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, at) => [
          `src/client/a${at}.ts`,
          `import type { A } from '../features/${family}/thing/client.ts'\n${'\n'.repeat(25)}`,
        ]),
      )
    expect(judge(users(6, 'live'))).toEqual([])
    expect(judge(users(7, 'live'))).toEqual([
      expect.stringMatching(
        /^src\/features\/live\/thing: 7 files of server, client and engine import it, at most 6: src\/client\/a0/,
      ),
    ])
    expect(judge(users(8, 'mcp'))).toEqual([])
    expect(judge(users(9, 'mcp'))).toHaveLength(1)
  })

  it('lets a feature import the messages of its own and of a lower family', () => {
    const text = `import { a } from './messages.ts'\nimport { b } from '../roots/messages.ts'\nimport { c } from '../../mcp/tools/messages.ts'`
    expect(judge({ 'src/features/live/scopes/server.ts': text })).toEqual([])
  })

  it('refuses a higher family, even its messages', () => {
    expect(judge({ 'src/features/mcp/tools/server.ts': `import { a } from '../../live/scopes/messages.ts'` })[0]).toContain(
      'family mcp may not import src/features/live/scopes/messages.ts',
    )
  })

  it('refuses everything of another feature but its messages', () => {
    expect(judge({ 'src/features/mcp/tools/server.ts': `import { a } from '../tasks/run.ts'` })[0]).toContain(
      'feature tools may import only messages.ts of tasks',
    )
  })

  it('keeps the sides of a feature apart, also by way of a third file', () => {
    expect(judge({ 'src/features/mcp/tools/server.ts': `import { a } from './client.ts'` })[0]).toContain(
      'may not import its client.ts',
    )
    expect(
      judge({
        'src/features/mcp/tools/client.ts': `import { a } from './call.ts'`,
        'src/features/mcp/tools/call.ts': `import { b } from './server.ts'`,
      }),
    ).toEqual([expect.stringContaining('client.ts of tools reaches its server.ts through src/features/mcp/tools/call.ts')])
  })

  it('lets host.ts see both sides, and messages.ts neither', () => {
    expect(judge({ 'src/features/live/hooks/host.ts': `import './server.ts'\nimport './client.ts'` })).toEqual([])
    expect(judge({ 'src/features/live/hooks/messages.ts': `import './server.ts'` })[0]).toContain('may not import its server.ts')
  })

  it('lets a list gather one role, and no feature import a list', () => {
    expect(
      judge({
        'src/features/mcp/server.ts': `export { tools } from './tools/server.ts'`,
        'src/features/server.ts': `import './mcp/server.ts'`,
      }),
    ).toEqual([])
    expect(judge({ 'src/features/mcp/server.ts': `export { tools } from './tools/client.ts'` })[0]).toContain('one list per role')
    expect(judge({ 'src/features/mcp/tools/server.ts': `import { x } from '../server.ts'` })[0]).toContain('which lists features')
  })
})
