/** `vivarium/gateway`: one endpoint in front of many servers. */
export type { ServerOption } from '../host/servers/entry.ts'
export { type GatewayFileOptions, readGatewayFile } from './config/load.ts'
export type { FoundServer, GatewayConfig } from './config/read.ts'
export { createGateway } from './create.ts'
export type { Gateway, OfferedName, UpstreamStatus } from './gateway.ts'
export type { GatewayOptions } from './options.ts'
export type { GatewayCall } from './trust/call.ts'
