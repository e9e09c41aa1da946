import { expect, test } from 'vitest'
import { addressIn } from '../server-errors.ts'
import { networkIn } from '../target.ts'
import { clueIn } from './clues.ts'
import { examineStart } from './program.ts'

const suspect = { node: 'v18.20.4', typed: true, unnamed: [], has: () => false, given: () => undefined }
const told = (said: string): string => {
  const { message, fix } = clueIn(said, suspect) ?? {}
  return `${message} → ${fix}`
}

test.each([
  ["ModuleNotFoundError: No module named 'mcp'", /The Python module mcp.*pip install mcp/],
  ["KeyError: 'API_KEY'", /variable API_KEY.*export API_KEY/],
  ['Please set the SLACK_BOT_TOKEN before you start', /variable SLACK_BOT_TOKEN/],
  ['Missing environment variable TOKEN', /variable TOKEN/],
  ['This server requires Node.js >=22.0.0', /The program requires Node.js >=22.0.0, but runs on v18.20.4/],
  [
    'Error [ERR_UNKNOWN_BUILTIN_MODULE]: No such built-in module: node:sqlite',
    /v18\.20\.4 has no module node:sqlite.*newer Node/,
  ],
  ['TypeError [ERR_UNKNOWN_FILE_EXTENSION]: Unknown file extension ".ts" for /x.ts', /v18\.20\.4 cannot run \.ts files/],
  [
    "npm warn EBADENGINE   required: { node: '>=22' },\nnpm warn EBADENGINE   current: { node: 'v18' }",
    /The program requires Node >=22/,
  ],
  ['SyntaxError: Cannot use import statement outside a module', /"type": "module"/],
  ['Error: listen EADDRINUSE: address already in use :::3000', /Port 3000 is already in use.*lsof -i :3000/],
  ['OSError: [Errno 98] Address already in use', /The port that the program uses is already in use/],
  ['npm error code E404', /registry has no such package/],
  ['npm error network request to https://x failed, reason: getaddrinfo ENOTFOUND x', /npm cannot reach the registry/],
  ['Cannot connect to the Docker daemon at unix:///var/run/docker.sock', /Docker is not running/],
  ["Error: EACCES: permission denied, open '/etc/x'", /lacks a permission: Error: EACCES: permission denied, open '\/etc\/x'/],
  ['usage: server [-h] folder', /The program expects other arguments: usage: server/],
  [
    'Traceback (most recent call last):\n  File "/home/me/server.py", line 3, in <module>\n    x()\nNameError: name \'x\' is not defined',
    /NameError.*Fix the error at \/home\/me\/server\.py:3/,
  ],
])('%s', (said, tells) => {
  expect(told(said)).toMatch(tells)
})

test('codes of errors are no variables, and an uncaught error is told with the place in code of its own', () => {
  const said = `node:internal/errors:540
      throw error;
TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be of type string. Received undefined
    at node:internal/fs:1:1
    at open (file:///srv/server.js:12:7)
    at node:internal/modules/run_main:99:1`
  expect(told(said)).toMatch(
    /The program fails when it starts: TypeError \[ERR_INVALID_ARG_TYPE\].*→ Fix the error at \/srv\/server\.js:12$/,
  )
})

test('what has to be fetched and stays silent is told by what keeps it from the network', () => {
  const silent = new DOMException('It took too long', 'TimeoutError')
  const told = examineStart(silent, { stderr: [], noise: [] }, { ...suspect, unnamed: ['HTTPS_PROXY'] }, 5_000)
  expect(told.fix).toMatch(/^Your shell sets HTTPS_PROXY, but the config does not pass it on/)
  expect(networkIn({ HTTPS_PROXY: 'x', NODE_EXTRA_CA_CERTS: 'y', SECRET: 'z', no_proxy: '' })).toEqual({
    HTTPS_PROXY: 'x',
    NODE_EXTRA_CA_CERTS: 'y',
  })
})

test('a program that has told its address is not waited for on its output', () => {
  expect(addressIn('MCP server running on http://localhost:3000/mcp')).toBe('http://localhost:3000/mcp')
  expect(addressIn('Server listening on port 8931.')).toBe('http://localhost:8931')
  expect(addressIn('See https://example.com/docs')).toBeUndefined()
})

test('what names a variable that the config forgets, or writes without braces, is told with what helps', () => {
  const said = 'vivarium: shop.ts cannot be loaded: SHOP_KEY is wrong\n  → Correct the file'
  const configured = { ...suspect, typed: false, has: () => true }
  expect(clueIn(said, configured)).toMatchObject({ fix: expect.stringContaining(`Add "env": { "SHOP_KEY": "\${SHOP_KEY}" }`) })
  expect(clueIn('TypeError: SHOP_KEY is wrong\n    at x', configured)).toMatchObject({
    fix: expect.stringContaining('Your shell'),
  })
  const bare = { ...configured, given: () => '$SHOP_KEY' }
  expect(clueIn(said, bare)?.fix).toBe(`"env.SHOP_KEY" is the text $SHOP_KEY: variables are written \${SHOP_KEY}`)
  expect(clueIn(said, { ...configured, given: () => 'a value' })?.fix).toBe('Correct the file')
})
