/**
 * The layers: lock-core <- lock-redis, lock-core <- domain, everything wired by apps/api.
 * `turbo boundaries` checks package against package; these rules check what single files may import.
 *
 * @type {import('dependency-cruiser').IConfiguration}
 */
module.exports = {
  forbidden: [
    { name: "no-circular", severity: "error", from: {}, to: { circular: true } },
    {
      name: "core-depends-on-nothing",
      comment: "lock-core may import Node's own modules and itself, nothing else",
      severity: "error",
      from: { path: "^packages/lock-core/src" },
      to: { pathNot: "^packages/lock-core/src", dependencyTypesNot: ["core"] },
    },
    {
      name: "lock-redis-only-core",
      comment: "lock-redis knows lock-core, and ioredis by its types only",
      severity: "error",
      from: { path: "^packages/lock-redis/src" },
      to: { pathNot: "^packages/(lock-core|lock-redis)/(src|dist)", dependencyTypesNot: ["core", "type-only"] },
    },
    {
      name: "domain-knows-no-driver",
      comment: "the domain speaks drizzle-orm/pg-core; drivers, stores and HTTP belong to apps/api",
      severity: "error",
      from: { path: "^packages/domain/src" },
      to: {
        path: [
          "^apps/",
          "^packages/lock-redis",
          "node_modules/(express|ioredis|postgres|pg|@electric-sql)/",
          "node_modules/drizzle-orm/(pglite|postgres-js|node-postgres|neon|vercel-postgres|aws-data-api|pg-proxy)/",
        ],
      },
    },
    { name: "packages-not-apps", severity: "error", from: { path: "^packages/" }, to: { path: "^apps/" } },
    {
      name: "testkit-only-in-tests",
      severity: "error",
      from: { path: "^(packages|apps)/[^/]+/src", pathNot: "^packages/testkit/" },
      to: { path: "^packages/testkit" },
    },
    {
      name: "no-deep-imports",
      comment: "other packages are used by their exports only",
      severity: "error",
      from: { path: "^(packages|apps)/([^/]+)/" },
      to: { path: "^packages/[^/]+/(src|dist)/(?!index|testing/index)", pathNot: "^$1/$2/" },
    },
    {
      name: "no-unlisted",
      severity: "error",
      from: { path: "^(packages|apps)/[^/]+/src" },
      to: { dependencyTypes: ["npm-no-pkg", "npm-unknown"] },
    },
    {
      name: "not-to-dev-dep",
      severity: "error",
      from: { path: "^(packages|apps)/[^/]+/src" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["npm-peer", "type-only"] },
    },
    { name: "no-unresolvable", severity: "error", from: { path: "^(packages|apps)/" }, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    // The own build output only: many npm packages have their entry in a dist folder, and must be seen.
    exclude: { path: "^(packages|apps)/[^/]+/(dist|coverage)/" },
    tsPreCompilationDeps: true,
    combinedDependencies: false,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["@ota/source", "types", "import", "node", "default"],
      extensions: [".ts", ".js", ".d.ts"],
    },
  },
};
