// A layer of a network: a convolution of padded channels, a bias, a rectifier, and the greatest of 2 x 2.
func.func @convolution(%image: tensor<1x128x128x8xf32>, %filter: tensor<3x3x8x16xf32>, %bias: tensor<16xf32>)
    -> tensor<1x64x64x16xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %padded = tensor.pad %image low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%n: index, %y: index, %x: index, %c: index):
      tensor.yield %zero : f32
  } : tensor<1x128x128x8xf32> to tensor<1x130x130x8xf32>
  %empty = tensor.empty() : tensor<1x128x128x16xf32>
  %start = linalg.broadcast ins(%bias : tensor<16xf32>) outs(%empty : tensor<1x128x128x16xf32>) dimensions = [0, 1, 2]
  %conv = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %filter : tensor<1x130x130x8xf32>, tensor<3x3x8x16xf32>)
      outs(%start : tensor<1x128x128x16xf32>) -> tensor<1x128x128x16xf32>
  %relu = linalg.map ins(%conv : tensor<1x128x128x16xf32>) outs(%empty : tensor<1x128x128x16xf32>) (%value: f32) {
    %positive = arith.maximumf %value, %zero : f32
    linalg.yield %positive : f32
  }
  %window = tensor.empty() : tensor<2x2xf32>
  %pool_empty = tensor.empty() : tensor<1x64x64x16xf32>
  %pool_start = linalg.fill ins(%lowest : f32) outs(%pool_empty : tensor<1x64x64x16xf32>) -> tensor<1x64x64x16xf32>
  %pooled = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
      ins(%relu, %window : tensor<1x128x128x16xf32>, tensor<2x2xf32>)
      outs(%pool_start : tensor<1x64x64x16xf32>) -> tensor<1x64x64x16xf32>
  return %pooled : tensor<1x64x64x16xf32>
}
