/** Registers the bench tools on an `McpServer` of the official SDK; v1 and v2 share this face. */
import { echo, form20, listedDescription, listedNames } from './tools.mjs'
import { echoInput, form20Input, listedInput } from './zod-tools.mjs'

const textResult = text => ({ content: [{ type: 'text', text }] })

export function registerAll(server, mode, shape = schema => schema) {
  if (mode === 'list') {
    for (const name of listedNames) {
      const config = { description: listedDescription(name), inputSchema: shape(listedInput) }
      server.registerTool(name, config, async () => textResult(name))
    }
    return
  }
  const echoConfig = { description: 'Echoes the text', inputSchema: shape(echoInput) }
  server.registerTool('echo', echoConfig, async args => textResult(echo(args)))
  const formConfig = { description: 'Takes a form of 20 properties', inputSchema: shape(form20Input) }
  server.registerTool('form20', formConfig, async args => textResult(form20(args)))
}
