import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { findSilent, publicSurface } from './surface.ts'

/** The names without a sentence, of modules of which the first is the entry. */
function silentIn(files: Readonly<Record<string, string>>): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'surface-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  return findSilent(publicSurface(Object.keys(files).slice(0, 1), folder)).map(line => line.split(' is public')[0] ?? '')
}

it('finds exports without a sentence, wherever they are declared', () => {
  const silent = silentIn({
    'a/index.ts': "export { told, silent as mute } from './b.ts'\n/** Told here. */\nexport function own() {}\n",
    'a/b.ts': '/** Told. */\nexport const told = 1\n/** @example new silent() */\nexport class silent {}\n',
  })
  expect(silent).toEqual(['a/b.ts:4: silent'])
})

it('finds members through what is extended and mentioned, but not those that an Omit or a Pick leaves out', () => {
  const silent = silentIn({
    'a/index.ts': "export type { Options, Alias } from './options.ts'\n",
    'a/options.ts': [
      "import type { Base, Inner, Far } from '../b/base.ts'",
      '/** Told. */',
      "export interface Options extends Omit<Base, 'left'> {",
      '  /** Told. */',
      '  readonly told?: readonly Inner[]',
      "  /** Told. */ readonly one: Far['one']",
      '}',
      '/** Told. */',
      "export type Alias = Pick<Base, 'left'> & string",
    ].join('\n'),
    'b/base.ts': [
      '/** Told. */',
      'export interface Base {',
      '  inherited(): void',
      '  left: string',
      '}',
      'export interface Inner {',
      '  /** Told. */',
      '  deep: string',
      '}',
      '/** Told. */',
      'export interface Far { one: string; two: string }',
    ].join('\n'),
  })
  expect(silent).toEqual([
    'b/base.ts:3: Base.inherited',
    'b/base.ts:4: Base.left',
    'b/base.ts:6: Inner, which Options.told mentions,',
    'b/base.ts:11: Far.one',
  ])
})

it('finds members of object types within members, parameters and results', () => {
  const silent = silentIn({
    'index.ts': [
      '/** Told. */',
      'export interface Options {',
      '  /** Told. */',
      '  readonly rates?: { readonly calls: number } | false',
      '  /** Told. */',
      '  ask(question: { readonly text: string }): Promise<{ readonly yes: boolean }>',
      '}',
      '/** Told. */',
      'export function open(options: { readonly port?: number } = {}): void {}',
    ].join('\n'),
  })
  expect(silent.map(line => line.split(': ')[1])).toEqual([
    'Options.rates.calls',
    'Options.ask.text',
    'Options.ask.yes',
    'open.port',
  ])
})

it('takes one comment for overloads, and passes over what nobody outside can reach', () => {
  const silent = silentIn({
    'index.ts': [
      "import type { Engine } from './engine.ts'",
      '/** Told. */',
      'export class Client {',
      '  readonly #kept = 1',
      '  private inner = 1',
      '  constructor(parts: { readonly wires: number }) {}',
      '  /**',
      '   * Made elsewhere.',
      '   * @internal',
      '   */',
      '  static make(engine: Engine): Client {}',
      '  /**',
      '   * Runs it.',
      '   * @experimental',
      '   */',
      '  readonly engine: Engine',
      '  /** Both. */',
      '  call(a: string): void',
      '  call(a: number): void',
      '  call(a: unknown): void {}',
      '  get silent(): number {}',
      '}',
    ].join('\n'),
    'engine.ts': 'export class Engine { run(): void {} }\n',
  })
  expect(silent).toEqual(['index.ts:21: Client.silent'])
})

it('reads built declarations the same way', () => {
  const silent = silentIn({
    'index.d.ts':
      "export { type Options } from './options.js';\nexport declare function open(options?: import('./options.js').More): void;\n",
    'options.d.ts':
      '/** Told. */\nexport interface Options {\n  silent?: string;\n}\nexport interface More {\n  other?: string;\n}\n',
  })
  expect(silent.map(line => line.split(': ')[1])).toEqual(['open', 'Options.silent', 'More, which open mentions,', 'More.other'])
})
