/** `vivarium/gateway`: one endpoint in front of many servers. */
export {}
