/** What `npm run build` makes of the entries: which code a server loads before anything is asked of it. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from './lib/files.ts'

/** All that loading a built file loads: our own files with their code, and what is none of ours. */
function loadedBy(entry: string): { readonly files: ReadonlyMap<string, string>; readonly others: readonly string[] } {
  const files = new Map<string, string>()
  const others: string[] = []
  const load = (file: string): void => {
    if (files.has(file)) return
    const code = readFileSync(file, 'utf8')
    files.set(file, code)
    // Built files have each import on a line of its own.
    for (const [, specifier = ''] of code.matchAll(/^(?:import|export)\b[^\n]*?(?:from )?"([^"\n]+)";$/gm)) {
      if (specifier.startsWith('.')) load(join(dirname(file), specifier))
      else others.push(specifier)
    }
  }
  load(join(root, entry))
  return { files, others }
}

it('vivarium/server needs neither Node nor a package: server.fetch runs on any web-standard runtime', () => {
  expect(loadedBy('dist/server.js').others).toEqual([])
  expect(loadedBy('dist/express.js').others).toContain('node:buffer')
})

// Its own file only names what it shares with the gateway and the command.
it('vivarium/server is two files beside its own; tasks, carriers and validators are loaded when they are first used', () => {
  const { files } = loadedBy('dist/server.js')
  const declares = (name: string): boolean =>
    [...files.values()].some(code => new RegExp(`\\b(?:function|class) ${name}\\b|\\b${name} = class\\b`).test(code))
  expect([files.size, declares('Engine'), declares('tasksServer')]).toEqual([3, true, true])
  for (const late of [
    'RunningTask',
    'HttpLane',
    'Lines',
    'NodeExchange',
    'wordFailures',
    'createFacade',
    'takeBare',
    'inspectContent',
    'unsourced',
    'Outbox',
    'featureSetsServer',
    'SessionHost',
    'hooksServer',
  ])
    expect([late, declares(late)]).toEqual([late, false])
})
