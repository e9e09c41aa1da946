import { describe, expect, it } from 'vitest'
import { scopeJudge } from './lists.ts'

const lists = { whitelist: ['/project/**', '/tmp/**', '#general', '#dev-*'], blacklist: ['**/.env', '**/secrets/**', '#admin-*'] }
const { judge } = scopeJudge(lists)

/** Places outside of `/project` and `/tmp`, or inside and forbidden, as somebody writes them who wants to get there. */
const spellings: readonly string[] = [
  // Dots
  '/project/../etc/hosts',
  '/project/..',
  '/project/../../etc/hosts',
  '/project/a/../../etc/hosts',
  '/project/./../etc/hosts',
  '/project/.../etc/hosts',
  '/project/a/..',
  '/project//../etc/hosts',
  '/project/a/b/c/../../../../etc/hosts',
  './project/../etc/hosts',
  '../project/x',
  '/tmp/../project/../etc',
  '/project/..;/etc/hosts',
  '/project/ ../etc/hosts',
  '/project/.. /etc/hosts',
  '/project/..\t/etc/hosts',
  // Escapes
  '/project/%2e%2e/etc/hosts',
  '/project/%2E%2E/etc/hosts',
  '/project/.%2e/etc/hosts',
  '/project/%2e./etc/hosts',
  '/project/..%2fetc/hosts',
  '/project/..%2Fetc%2Fhosts',
  '/project/..%5cetc%5chosts',
  '/project/%252e%252e/etc/hosts',
  '/project/%25252e%25252e/etc/hosts',
  '/project/%c0%ae%c0%ae/etc/hosts',
  '/project/%c0%ae%c0%ae%c0%afetc',
  '/project/%e0%80%ae%e0%80%ae/etc/hosts',
  '/project/%uff0e%uff0e/etc/hosts',
  '/project/%u002e%u002e/etc/hosts',
  '/project/&#46;&#46;/etc/hosts',
  '/project/&#x2e;&#x2e;/etc/hosts',
  '/project/&period;&period;/etc/hosts',
  '/project/\\u002e\\u002e/etc/hosts',
  '/project/x%00/../../etc/hosts',
  '/project/.%65nv',
  '/project/%2eenv',
  '/project/%73ecrets/key',
  '/project/%2573ecrets/key',
  '/project/&#115;ecrets/key',
  // Slashes
  '//project/x',
  '/project//x',
  '///etc/hosts',
  '/project/x//.env',
  '\\project\\x',
  '/project\\..\\..\\etc\\hosts',
  '/project/..\\..\\etc\\hosts',
  '/project/a\\.env',
  '/project\\secrets\\key',
  '/project/..\u2215etc\u2215hosts',
  '/project/..\u2044etc',
  '/project/..\uff0fetc',
  '/project/..\u29f8etc',
  '/project/..\u2571etc',
  '/project\u2215..\u2215etc',
  '/project/..\uff3cetc',
  '/project/secrets\u2215key',
  // Case
  '/PROJECT/x',
  '/Project/x',
  '/project/.ENV',
  '/project/.Env',
  '/project/SECRETS/key',
  '/project/Secrets/key',
  '/project/ſecrets/key',
  '/project/.eNV',
  '/project/.env/',
  // Characters that look alike or are not seen
  '/project/\u2024\u2024/etc/hosts',
  '/project/\uff0e\uff0e/etc/hosts',
  '/project/\u2025/etc/hosts',
  '/project/\u2026/etc/hosts',
  '/project/.\u200benv',
  '/project/.e\u00adnv',
  '/project/.env\u200d',
  '/project/\u202evne.',
  '/project/\ufeff.env',
  '/project/.\u0435nv',
  '/project/s\u0435crets/key',
  '/project/\u0455ecrets/key',
  '/project/sec\u0433ets/key',
  '/project/secret\u0455/key',
  '/project/\uff53\uff45\uff43\uff52\uff45\uff54\uff53/key',
  '/project/.\uff45\uff4e\uff56',
  '/\u0440roject/x',
  '/pr\u043eject/x',
  '/projec\u0442/x',
  '/project\u00a0/x',
  '/project\u2003/x',
  '/project/\ud835\udd28ey\u0000',
  // NFC and NFD
  '/project/cafe\u0301/x',
  '/project/\u212bngstrom',
  '/project/\u1e9b\u0323',
  '/project/\ufb01le',
  '/project/e\u0301/../.env',
  // NUL and control characters
  '/project/x\u0000',
  '/project/x\u0000.txt',
  '/project/.env\u0000.txt',
  '/etc/hosts\u0000/project/x',
  '/project/x\n/etc/hosts',
  '/project/x\r',
  '/project/\u007f',
  '/project/\u0085',
  '/project/\u2028x',
  // Ends of names
  '/project/.env.',
  '/project/.env ',
  '/project/.env...',
  '/project/secrets./key',
  '/project/secrets /key',
  '/project/x.',
  '/project/.env::$DATA',
  '/project/.env:stream',
  '/project/SECRET~1/key',
  '/project/x/ ',
  // Other ways to say where
  '~/project/x',
  'file:///etc/hosts',
  'file:///project/../etc/hosts',
  'file://localhost/project/.env',
  'C:/project/x',
  'C:\\project\\x',
  '\\\\host\\project\\x',
  '//host/project/x',
  '/proc/self/root/project/x',
  'project/x',
  ' /project/x',
  '/project',
  '',
  // Channels
  '#general ',
  '#general\u200b',
  '#gener\u0430l',
  '#GENERAL',
  '#dev-ops/../admin-x',
  '#admin-x',
  '#Admin-x',
  '#\u0430dmin-x',
  '#ad\u00admin-x',
  `/project/${'x'.repeat(5_000)}`,
  '/project/\ud800',
]

describe('scopes', () => {
  it('are approved in no spelling that leads elsewhere, by label', () => {
    expect(new Set(spellings).size).toBeGreaterThanOrEqual(120)
    expect(spellings.filter(label => judge({ label }).is === 'allowed')).toEqual([])
  })

  it('are approved in no spelling that leads elsewhere, by payload under a harmless label', () => {
    const hidden = spellings.filter(path => judge({ label: '/project/ok.ts', payload: { path } }).is === 'allowed')
    expect(hidden).toEqual([])
    const deep = spellings.filter(each => judge({ label: '/tmp/a', payload: { edits: [{ files: [each] }] } }).is === 'allowed')
    expect(deep).toEqual([])
  })

  it('that are forbidden are refused in every spelling, also where somebody would be asked otherwise', () => {
    const forbidden = spellings.filter(text => /env$|\.env[.: \0]|key$/i.test(text) && !/~1|vne/.test(text))
    expect(forbidden.length).toBeGreaterThan(15)
    expect(forbidden.filter(label => judge({ label }).is !== 'forbidden')).toEqual([])
  })

  it.each([
    '/project/src/main.ts',
    '/project/.gitignore',
    '/project/a b/c.ts',
    '/project/café/x',
    '/project/проект/файл',
    '/project/日本/x',
    '/project/x..y',
    '/project/environment',
    '/tmp/x',
    '#general',
    '#dev-ops',
  ])('%s is approved as it stands', label => {
    expect(judge({ label })).toMatchObject({ is: 'allowed' })
    expect(judge({ label, payload: { mode: 'append', times: 3 } })).toMatchObject({ is: 'allowed' })
  })

  it('of a folder that is forbidden with all in it are forbidden', () => {
    expect(judge({ label: '/project/secrets' })).toMatchObject({ is: 'forbidden', pattern: '**/secrets/**' })
  })

  it('with a payload that nobody can look through are left to a person', () => {
    const payload = { paths: Array.from({ length: 2_000 }, (_, i) => `/project/${i}`) }
    expect(judge({ label: '/project/x', payload })).toMatchObject({ is: 'open' })
    expect(judge({ label: '/project/x', payload: { text: 'x'.repeat(5_000) } })).toMatchObject({ is: 'open' })
  })

  it('without lists are nobody’s but the rules’', () => {
    expect(scopeJudge({}).judge({ label: '/x' })).toEqual({ is: 'open', flaw: undefined })
    expect(() => scopeJudge({ whitelist: [''] })).toThrow('"" is not a scope pattern')
  })
})
